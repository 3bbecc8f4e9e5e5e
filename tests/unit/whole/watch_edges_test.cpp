// SPDX-License-Identifier: Apache-2.0
// What the job says of its directory, and each rule about files that no layout knows, at their limits.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole::watch_edges_test {
namespace {

using store::testing::noise;
using store::testing::safetensors;
using store::testing::torch_zip;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class WatchEdges : public ::testing::Test {
 protected:
  Directory dir;
  WholeWatch watch;
  Writer writer = Writer::running;

  Verdict look() { return watch.look(dir.listing, {dir.now_ms * 1'000'000}, writer, dir.access()); }
  Verdict look_after(std::int64_t ms) {
    while (ms > 900) {
      dir.pass(900);
      ms -= 900;
      static_cast<void>(look());
    }
    dir.pass(ms);
    return look();
  }
  void take() { watch.taken(dir.listing); }
  void step(int number) {  // a whole folder of a trainer
    const std::string folder = "checkpoint-" + std::to_string(number);
    dir.save(folder + "/model.safetensors", safetensors({{"a", noise(40, static_cast<std::uint64_t>(number))}}));
    dir.save(folder + "/trainer_state.json", "{}");
  }
  static std::string archive(std::uint64_t seed) {
    return torch_zip({{"ckpt/data.pkl", "model optimizer" + noise(200, seed)}, {"ckpt/data/0", noise(2000, seed)}});
  }
};

// --- .commit --------------------------------------------------------------------------------------------------------

TEST_F(WatchEdges, AMarkerVouchesForWhatIsNoYoungerThanItself) {
  dir.save("a.bin", "1");
  dir.save(".commit", "");
  Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::commit_marker);
  EXPECT_EQ(verdict.how, store::k_how_marker);
  take();
  EXPECT_EQ(look().whole, Whole::nothing_new);
  dir.pass(1);
  dir.save("a.bin", "2");
  verdict = look();
  EXPECT_EQ(verdict.whole, Whole::not_yet);
  EXPECT_THAT(verdict.why, HasSubstr("waiting for a new one"));
  EXPECT_EQ(verdict.blame, ".commit");
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::never);
  writer = Writer::running;
  dir.save(".commit", "");
  EXPECT_EQ(look().whole, Whole::commit_marker) << "made at the same moment, and after it";
  dir.pass(1);
  dir.save("b.bin", "3");
  verdict = look();
  EXPECT_EQ(verdict.why, "'b.bin' changed after .commit");
  EXPECT_EQ(verdict.blame, "b.bin");
}

TEST_F(WatchEdges, ALogMayGrowAfterTheMarkerAndATemporaryFileIsKept) {
  dir.save("a.bin", "1");
  dir.save("half.tmp", "1");
  dir.save(".commit", "");
  dir.pass(1);
  dir.save("train.log", "line\n");
  const Verdict verdict = look();
  ASSERT_EQ(verdict.whole, Whole::commit_marker) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, IsEmpty());
  EXPECT_THAT(verdict.selection.growing, ElementsAre("train.log"));
}

TEST_F(WatchEdges, OnceThereWasAMarkerOneIsWaitedFor) {
  dir.save("a.bin", "1");
  dir.save(".commit", "");
  ASSERT_TRUE(look().is_whole());
  take();
  dir.remove(".commit");
  dir.save("a.bin", "22");
  const Verdict verdict = look_after(120'000);
  EXPECT_EQ(verdict.whole, Whole::not_yet);
  EXPECT_EQ(verdict.why, "waiting for .commit");
  EXPECT_EQ(verdict.blame, ".commit");
}

TEST_F(WatchEdges, AMarkerOfATornFileNamesTheFile) {
  dir.save("ckpt.pt", archive(1).substr(0, 1500));
  dir.save(".commit", "");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::not_yet);
  EXPECT_THAT(verdict.why, HasSubstr("'ckpt.pt' is incomplete: "));
  EXPECT_EQ(verdict.blame, "ckpt.pt");
}

// --- whole_when -----------------------------------------------------------------------------------------------------

class WatchedFile : public WatchEdges {
 protected:
  WatchedFile() {
    WholeRules rules;
    rules.whole_when = "*.done";
    watch = WholeWatch(rules);
  }
};

TEST_F(WatchedFile, IsWaitedForByItsPattern) {
  dir.save("model.bin", "1");
  dir.save("x.done.tmp", "");
  const Verdict verdict = look_after(120'000);
  EXPECT_EQ(verdict.whole, Whole::not_yet);
  EXPECT_EQ(verdict.why, "waiting for a change of '*.done' (whole_when)");
  EXPECT_EQ(verdict.blame, "*.done");
  writer = Writer::killed;
  EXPECT_EQ(look().whole, Whole::never);
}

TEST_F(WatchedFile, InPlaceRestsForASecondUnlessNobodyWritesAnyMore) {
  dir.save("model.bin", "1");
  dir.save("deep/step.done", "5");
  Verdict verdict = look();
  EXPECT_EQ(verdict.why, "'deep/step.done' has just changed");
  EXPECT_EQ(verdict.blame, "deep/step.done");
  EXPECT_FALSE(look_after(999).is_whole());
  verdict = look_after(1);
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_EQ(verdict.how, "whole-when");
  EXPECT_EQ(verdict.why, "whole-when");
  take();
  EXPECT_EQ(look().whole, Whole::nothing_new);
  dir.pass(1000);
  dir.save("model.bin", "2");
  verdict = look_after(120'000);
  EXPECT_EQ(verdict.why, "waiting for a change of '*.done' (whole_when)");
  EXPECT_EQ(verdict.blame, "deep/step.done");
  dir.save("deep/step.done", "6");
  writer = Writer::killed;
  EXPECT_TRUE(look().is_whole());
}

TEST_F(WatchedFile, IsTheNewestOfThoseThatMatch) {
  dir.save("1.done", "");
  dir.pass(2000);
  dir.save("model.bin", "1");
  dir.save("2.done", "");
  ASSERT_TRUE((look(), look_after(1000)).is_whole());
  take();
  dir.pass(1);
  dir.save("1.done", "again");
  EXPECT_TRUE((look(), look_after(1000)).is_whole()) << "now that one is the newest";
}

TEST_F(WatchedFile, VouchesForNothingThatChangedAfterItButLogsAndTemporaryFiles) {
  dir.save("model.bin", "1");
  dir.save("1.done", "");
  look();
  dir.pass(1);
  dir.save("train.log", "line\n");
  dir.save("next.tmp", "x");
  Verdict verdict = look_after(1000);
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, ElementsAre("next.tmp"));
  EXPECT_THAT(verdict.selection.growing, ElementsAre("train.log"));
  dir.save("model.bin", "2");
  verdict = look_after(5000);
  EXPECT_EQ(verdict.why, "'model.bin' changed after '1.done'");
  EXPECT_EQ(verdict.blame, "1.done");
}

TEST_F(WatchedFile, NeedNotBeThereWhenTheProgramEndedWell) {
  dir.save("model.bin", "1");
  writer = Writer::exited;
  EXPECT_EQ(look().whole, Whole::exit);
}

// --- files of no layout ---------------------------------------------------------------------------------------------

TEST_F(WatchEdges, APartAloneIsGivenAMinuteAndAnyOtherFileTenSeconds) {
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

TEST_F(WatchEdges, ATemporaryNameIsBlamedWhileItMayStillBeRenamed) {
  dir.save("state.bin", "1");
  dir.save("next.tmp", "2");
  look();
  const Verdict verdict = look_after(60'000);
  EXPECT_EQ(verdict.why, "'next.tmp' has a temporary name");
  EXPECT_EQ(verdict.blame, "next.tmp");
}

TEST_F(WatchEdges, AShardThatIsMissingIsWaitedForExceptOfAGang) {
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

TEST_F(WatchEdges, SettingsBesideAUnitAreNoNewsAndGoWithTheNextOne) {
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

TEST_F(WatchEdges, WhatIsTornStaysAsItWasThroughEachLaterSnapshot) {
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

TEST_F(WatchEdges, AUnitThatWasNeverWholeIsLeftOutOfWhatAnotherMakesWhole) {
  dir.save("checkpoint-1/model.safetensors", "torn");
  dir.save("checkpoint-1/trainer_state.json", "{}");
  step(2);
  const Verdict verdict = (look(), look_after(5000));
  ASSERT_TRUE(verdict.is_whole()) << verdict.why;
  EXPECT_THAT(verdict.selection.left_out, Contains("checkpoint-1/model.safetensors"));
  EXPECT_THAT(verdict.selection.from_previous, IsEmpty());
}

TEST_F(WatchEdges, WhatWasRestoredIsNoNewsUntilItChanges) {
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

TEST_F(WatchEdges, OfARestoredUnitNothingIsAwaitedFromTheOtherFiles) {
  step(1);
  dir.save("state.json", "{}");
  watch.restored(dir.listing, {dir.now_ms * 1'000'000}, dir.access());
  dir.pass(5000);
  dir.rename_into("state.json", "{ }");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::format) << verdict.why;
  EXPECT_FALSE(verdict.provisional);
}

// --- after a kill ---------------------------------------------------------------------------------------------------

TEST_F(WatchEdges, AfterAKillOnlyWhatIsProvenCounts) {
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

TEST_F(WatchEdges, AFolderThatWasBeingRemovedIsNotTrustedAfterAKill) {
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

// --- how long it was written
// ------------------------------------------------------------------------------------------

TEST_F(WatchEdges, WritingLastsFromTheFirstChangeThatIsSeenToTheLast) {
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
}  // namespace gridctl::whole::watch_edges_test
