// SPDX-License-Identifier: Apache-2.0
// Each rule about files that no layout knows, at its limits.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole::watch_files_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(WatchTest, APartAloneIsGivenAMinuteAndAnyOtherFileTenSeconds) {
  for (const auto& [name, ms] : {std::pair{"model.json", 60'000}, {"state.bin", 10'000}}) {
    dir = {};
    watch = WholeWatch();
    dir.save(name, "{}");
    look();
    Verdict verdict = look_after(ms - 1);
    EXPECT_FALSE(verdict.is_whole()) << name;
    EXPECT_EQ(verdict.blame, name);
    verdict = look_after(1);
    EXPECT_EQ(verdict.whole, Whole::quiet) << name << verdict.why;
    EXPECT_EQ(verdict.how, "quiet");
    EXPECT_TRUE(verdict.provisional);
  }
}

TEST_F(WatchTest, ATemporaryNameIsBlamedWhileItMayStillBeRenamed) {
  dir.save("state.bin", "1");
  dir.save("next.tmp", "2");
  look();
  const Verdict verdict = look_after(60'000);
  EXPECT_EQ(verdict.why, "'next.tmp' has a temporary name");
  EXPECT_EQ(verdict.blame, "next.tmp");
}

TEST_F(WatchTest, AShardThatIsMissingIsWaitedForExceptOfAGang) {
  const auto shard = [&] { dir.save("model-00001-of-00002.bin", "1"); };
  shard();
  EXPECT_FALSE((look(), look_after(100'000)).is_whole());
  EXPECT_TRUE(look_after(100'000).provisional) << "but not for ever";
  WholeRules rules;
  rules.of_gang = true;
  dir = {};
  watch = WholeWatch(rules);
  shard();
  EXPECT_TRUE((look(), look_after(300'000)).is_whole()) << "it may lie on another host";
}

TEST_F(WatchTest, SettingsBesideAUnitAreNoNewsAndGoWithTheNextOne) {
  step(1);
  ASSERT_TRUE((look(), look_after(5000)).is_whole());
  take();
  dir.save("config.json", "{}");
  look();
  EXPECT_EQ(look_after(999).whole, Whole::not_yet);
  EXPECT_EQ(look_after(1).whole, Whole::nothing_new);
  step(2);
  const Verdict verdict = (look(), look_after(5000));
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_EQ(verdict.how, "transformers:checkpoint-2");
  EXPECT_THAT(verdict.selection.left_out, IsEmpty());
}

TEST_F(WatchTest, WhatIsTornStaysAsItWasThroughEachLaterSnapshot) {
  step(1);
  ASSERT_TRUE((look(), look_after(5000)).is_whole());
  take();
  dir.save("checkpoint-1/model.safetensors", "torn");
  for (const int next : {2, 3, 4}) {
    step(next);
    const Verdict verdict = (look(), look_after(5000));
    ASSERT_TRUE(verdict.is_whole()) << next << verdict.why;
    EXPECT_EQ(verdict.how, "transformers:checkpoint-" + std::to_string(next));
    EXPECT_THAT(verdict.selection.from_previous, ElementsAre("checkpoint-1/model.safetensors")) << next;
    EXPECT_THAT(verdict.selection.left_out, IsEmpty()) << next;
    take();
  }
}

TEST_F(WatchTest, AUnitThatWasNeverWholeIsLeftOutOfWhatAnotherMakesWhole) {
  dir.save("checkpoint-1/model.safetensors", "torn");
  dir.save("checkpoint-1/trainer_state.json", "{}");
  step(2);
  const Verdict verdict = (look(), look_after(5000));
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, Contains("checkpoint-1/model.safetensors"));
  EXPECT_THAT(verdict.selection.from_previous, IsEmpty());
}

TEST_F(WatchTest, WhatWasRestoredIsNoNewsUntilItChanges) {
  step(1);
  dir.save("config.json", "{}");
  dir.save("other.pt", archive(1));
  watch.restored(dir.listing, {dir.now_ms * 1'000'000}, dir.access());
  EXPECT_EQ(look().whole, Whole::nothing_new);
  EXPECT_EQ(look_after(300'000).whole, Whole::nothing_new);
  dir.save("checkpoint-1/model.safetensors", "torn");
  step(2);
  const Verdict verdict = (look(), look_after(5000));
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.from_previous, ElementsAre("checkpoint-1/model.safetensors"));
  EXPECT_THAT(verdict.selection.left_out, IsEmpty());
}

TEST_F(WatchTest, OfARestoredUnitNothingIsAwaitedFromTheOtherFiles) {
  step(1);
  dir.save("state.json", "{}");
  watch.restored(dir.listing, {dir.now_ms * 1'000'000}, dir.access());
  dir.pass(5000);
  dir.rename_into("state.json", "{ }");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::format) << verdict.why;
  EXPECT_FALSE(verdict.provisional);
}

TEST_F(WatchTest, AfterAKillOnlyWhatIsProvenCounts) {
  dir.save("state.bin", "1");
  look();
  writer = Writer::killed;
  Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::never);
  EXPECT_EQ(verdict.why, "'state.bin' may be torn: its writer was killed");
  EXPECT_EQ(verdict.blame, "state.bin");

  dir = {};
  watch = WholeWatch();
  writer = Writer::running;
  dir.save("ckpt.pt", archive(1));
  look();
  writer = Writer::killed;
  verdict = look();
  EXPECT_EQ(verdict.whole, Whole::format) << verdict.why;
  EXPECT_EQ(verdict.why, "all new files are valid");
  EXPECT_EQ(verdict.how, "torch:ckpt.pt");
  EXPECT_FALSE(verdict.provisional);
}

TEST_F(WatchTest, AFolderThatWasBeingRemovedIsNotTrustedAfterAKill) {
  for (const char* name : {"step-1/a.pt", "step-1/b.pt"}) dir.save(name, archive(1));
  look();
  dir.pass(1000);
  dir.remove("step-1/a.pt");
  look();
  dir.save("step-2/a.pt", archive(2));
  look();
  writer = Writer::killed;
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::never);
  EXPECT_EQ(verdict.why, "its folder was being removed");
  EXPECT_EQ(verdict.blame, "step-1/b.pt");
}

// ------------------------------------------------------------------------------------------

TEST_F(WatchTest, WritingLastsFromTheFirstChangeThatIsSeenToTheLast) {
  const auto written = [this] { return watch.written_for() / std::chrono::milliseconds{1}; };
  look();
  EXPECT_EQ(written(), 0) << "of nothing";
  dir.pass(500);
  dir.save("a.bin", "1");
  look();
  EXPECT_EQ(written(), 0);
  dir.pass(500);
  dir.save("b.bin", "1");
  look();
  EXPECT_EQ(written(), 500);
  look_after(5000);
  EXPECT_EQ(written(), 500) << "rest is no writing";
  dir.save("train.log", "1");
  look();
  EXPECT_EQ(written(), 500) << "nor are logs";
  take();
  EXPECT_EQ(written(), 0);
  look_after(5000);
  EXPECT_EQ(written(), 0);
  dir.save("a.bin", "2");
  look();
  dir.pass(300);
  dir.save("a.bin", "3");
  look();
  EXPECT_EQ(written(), 300);
}

}  // namespace
}  // namespace gridctl::whole::watch_files_test
