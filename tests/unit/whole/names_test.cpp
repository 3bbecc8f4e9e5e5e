// SPDX-License-Identifier: Apache-2.0
#include "whole/names.hpp"

#include <gtest/gtest.h>

namespace gridctl::whole::names_test {
namespace {

TEST(Names, OfTemporaryFiles) {
  for (const char* name : {"ckpt.pt.tmp", "a.partial", ".ckpt.swp", "tmp-1/x.pt", "step-3.orbax-checkpoint-tmp-12/a", "x~",
                           "ckpt-1_temp/part-00000-of-00001.index", ".tmpdFhDkH"})
    EXPECT_TRUE(is_temporary_name(name)) << name;
  for (const char* name : {"ckpt.pt", "attempt", "tmpfile.bin", "contemporary", "a/template.json"})
    EXPECT_FALSE(is_temporary_name(name)) << name;
}

TEST(Names, OfLogs) {
  for (const char* name : {"train.log", "a/metrics.csv", "runs/events.out.tfevents.1.h", "x.jsonl", "stderr"})
    EXPECT_TRUE(is_log_name(name)) << name;
  for (const char* name : {"catalog", "log.json", "state.json"}) EXPECT_FALSE(is_log_name(name)) << name;
}

TEST(Names, SlotsOfSaves) {
  EXPECT_EQ(slot_of("step-100/model.pt"), "step-#/model.pt");
  EXPECT_EQ(slot_of("step-100/model-100.pt"), "step-#/model-#.pt");
  EXPECT_EQ(slot_of("step-000100/model-100.pt"), "step-#/model-#.pt");
  EXPECT_EQ(slot_of("step-100/0.pt"), "step-#/0.pt");
  EXPECT_EQ(slot_of("epoch=3-step=70.ckpt"), "epoch=#-step=#.ckpt");
  EXPECT_EQ(slot_of("model-00001-of-00004.bin"), "model-00001-of-00004.bin");
  EXPECT_EQ(slot_of("rank_0_200.pt"), "rank_0_#.pt");
  EXPECT_EQ(slot_of("mp_rank_01/x"), "mp_rank_01/x");
}

TEST(Names, OfWholeStatesAndParts) {
  for (const char* name : {"ckpt.pt", "checkpoint_100.npz", "last.ckpt", "step-2.pt", "state.json", "out/000100.npz"})
    EXPECT_TRUE(names_a_whole_state(name)) << name;
  for (const char* name : {"model.pt", "trainer_state.json", "ema_last.pt"}) EXPECT_FALSE(names_a_whole_state(name)) << name;
  EXPECT_TRUE(names_a_part("model.json"));
  EXPECT_TRUE(names_a_part("a/optimizer_3.bin"));
  EXPECT_FALSE(names_a_part("ckpt.pt"));
  EXPECT_TRUE(names_settings("config.json"));
  EXPECT_FALSE(names_settings("config.bin"));
}

TEST(Names, NumberedFolders) {
  EXPECT_EQ(numbered_folder("a/step-3/b/c"), "a/step-3");
  EXPECT_EQ(numbered_folder("a/b3"), "");
}

}  // namespace
}  // namespace gridctl::whole::names_test
