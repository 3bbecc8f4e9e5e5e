// SPDX-License-Identifier: Apache-2.0
// The job itself says that its directory is complete: by a marker, or by a file that the job file names.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole::watch_marker_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(WatchTest, AMarkerVouchesForWhatIsNoYoungerThanItself) {
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

TEST_F(WatchTest, ALogMayGrowAfterTheMarkerAndATemporaryFileIsKept) {
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

TEST_F(WatchTest, OnceThereWasAMarkerOneIsWaitedFor) {
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

TEST_F(WatchTest, AMarkerOfATornFileNamesTheFile) {
  dir.save("ckpt.pt", archive(1).substr(0, 1500));
  dir.save(".commit", "");
  const Verdict verdict = look();
  EXPECT_EQ(verdict.whole, Whole::not_yet);
  EXPECT_THAT(verdict.why, HasSubstr("'ckpt.pt' is incomplete: "));
  EXPECT_EQ(verdict.blame, "ckpt.pt");
}

class WatchedFile : public WatchTest {
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

}  // namespace
}  // namespace gridctl::whole::watch_marker_test
