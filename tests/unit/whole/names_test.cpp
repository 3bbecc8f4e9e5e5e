// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/whole/directory.hpp"
#include "whole/names.hpp"

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

TEST(NameRules, EachTemporaryEndingAndBeginning) {
  for (const char* name :
       {"a.tmp",      "a.temp", "a.part", "a.partial",    "a.incomplete", "a.swp",   "a.swx", "a.writing",
        "a.download", "a.lock", "a~",     ".#a",          "tmp-a",        "tmp_a",   ".tmpa", "a.tmp.b",
        "a-tmp-b",    "a-tmp",  "a_temp", "a.tempstate1", "tmp",          "x/tmp/y", "tmp/y", "a.tmp/y"})
    EXPECT_TRUE(is_temporary_name(name)) << name;
  for (const char* name : {"", "a", "atmp", "tmpa", "a.temps", "partial", "a/b", "temp", "a.tmpx"})
    EXPECT_FALSE(is_temporary_name(name)) << name;
}

TEST(NameRules, EachEndingOfALog) {
  for (const char* name : {"a.log", "a.out", "a.err", "a.csv", "a.tsv", "a.jsonl", "a.ndjson", "a.wandb", "a.trace",
                           "stdout", "stderr", "x/stdout", "events.out.tfevents.1"})
    EXPECT_TRUE(is_log_name(name)) << name;
  for (const char* name : {"stdout2", "a.logs", "log/a", "xevents.out.tfevents.1", "a.outx"})
    EXPECT_FALSE(is_log_name(name)) << name;
}

TEST(NameRules, SlotsKeepWhatTellsMembersApart) {
  for (const auto& [path, slot] : {std::pair{"a1/b2/c", "a#/b#/c"},
                                   {"rank-3/x-7.pt", "rank-3/x-#.pt"},
                                   {"gpu=2.pt", "gpu=2.pt"},
                                   {"layer.12.pt", "layer.12.pt"},
                                   {"RANK0.pt", "RANK0.pt"},
                                   {"ranks0.pt", "ranks#.pt"},
                                   {"x__3.pt", "x__#.pt"},
                                   {"1-of-2.pt", "1-of-2.pt"},
                                   {"step-7/model-8.pt", "step-#/model-8.pt"},
                                   {"step-0/model-000.pt", "step-#/model-#.pt"},
                                   {"rank_1/2.pt", "rank_1/#.pt"},
                                   {"a/7.pt", "a/#.pt"},
                                   {"", ""},
                                   {"42", "#"}})
    EXPECT_EQ(slot_of(path), slot) << path;
}

TEST(NameRules, SettingsStatesAndParts) {
  for (const char* name :
       {"a/config.json", "training-args.yaml", "README.md", "hparams_2.yml", "vocab.txt", "x.py", "a.b/config.toml"})
    EXPECT_TRUE(names_settings(name)) << name;
  for (const char* name : {"config", "model.json", "settings.bin", "configs.json", "config/x.json", "x.pyc"})
    EXPECT_FALSE(names_settings(name)) << name;
  for (const char* name : {"ckpt-3.pt", "Checkpoint_LAST.pt", "7.pt", "a/model/ckpt.pt"})
    EXPECT_TRUE(names_a_whole_state(name)) << name;
  for (const char* name : {"ckpt-model.pt", "x.pt", "ckpt.best2.pt"}) EXPECT_FALSE(names_a_whole_state(name)) << name;
  EXPECT_FALSE(names_a_whole_state(".model")) << "the dot begins its name";
  EXPECT_FALSE(names_a_whole_state("ckpt.5x")) << "what begins with a digit is no ending: x is one of its words";
  EXPECT_TRUE(names_a_part("ema-3.pt"));
  EXPECT_FALSE(names_a_part("modelling.pt"));
}

TEST(NameRules, TheOutermostNumberedFolder) {
  EXPECT_EQ(numbered_folder("step-1/x-2/file"), "step-1");
  EXPECT_EQ(numbered_folder("a/9"), "");
  EXPECT_EQ(numbered_folder("0/x"), "0");
  EXPECT_EQ(numbered_folder("ab/cd/e"), "");
}

}  // namespace
}  // namespace gridctl::whole::names_test
