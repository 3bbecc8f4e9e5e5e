// SPDX-License-Identifier: Apache-2.0
#include "job/drill.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"

namespace gridctl::job::drill_test {
namespace {

using Range = ProgressReader::Range;

std::map<std::string, Range> read(std::string_view text) {
  ProgressReader reader;
  reader.read(text);
  return reader.ranges();
}

TEST(ProgressReader, FindsTheCountsThatProgramsPrint) {
  const std::pair<const char*, std::map<std::string, Range>> cases[] = {
      {"step 12\nstep 13\n", {{"step", {12, 13}}}},
      {"[gpu0] Step: 7 | loss 2.31\r", {{"step", {7, 7}}}},
      {"{\"loss\": 0.5, \"global_step\": 40}\n", {{"step", {40, 40}}}},
      {"Epoch [3/10], Step [100/600]\n", {{"step", {100, 100}}, {"epoch", {3, 3}}}},
      {"iteration 5 iter=6\n", {{"iteration", {5, 5}}, {"iter", {6, 6}}}},
      {"epoch=2 batch #9\nepoch=1 batch #3\n", {{"epoch", {1, 2}}, {"batch", {3, 9}}}},
  };
  for (const auto& [text, ranges] : cases) EXPECT_EQ(read(text), ranges) << text;
}

TEST(ProgressReader, TakesNothingElseForACount) {
  for (const char* text : {"footstep 12\n", "step12\n", "in 12 steps\n", "step twelve\n", "stepping 3\n",
                           "step 1234567890123456\n", "batch size 32\n", "step 5", "step\n5\n", "timestep 9\n"})
    EXPECT_THAT(read(text), ::testing::IsEmpty()) << text;
}

TEST(ProgressReader, BearsPiecesOfAnySizeAndEndlessLines) {
  ProgressReader reader;
  for (const char c : std::string_view("loss 1 step 41\nstep 42\n")) reader.read({&c, 1});
  EXPECT_EQ(reader.ranges().at("step"), (Range{41, 42}));
  reader.read(std::string(1 << 20, 'x'));
  reader.read(" step 1\nstep 43\n");
  EXPECT_EQ(reader.ranges().at("step"), (Range{41, 43}));
}

TEST(ProgressReader, KnowsWhenACountHasMoved) {
  ProgressReader reader;
  EXPECT_TRUE(reader.moves_or_is_mute());
  reader.read("step 1\n");
  EXPECT_FALSE(reader.moves_or_is_mute());
  reader.read("step 2\n");
  EXPECT_TRUE(reader.moves_or_is_mute());
}

DrillFacts facts() {
  DrillFacts facts;
  facts.from = "ada";
  facts.to = "bob";
  facts.first = facts.restored = {{1}, {}, 1};
  facts.first.root.bytes[0] = facts.restored.root.bytes[0] = std::byte{1};
  return facts;
}
DrillFacts steps(Range before, Range after) {
  DrillFacts made = facts();
  made.before["step"] = before;
  made.after["step"] = after;
  return made;
}

TEST(DrillVerdict, StepsThatGoOnShowThatItResumes) {
  const auto verdict = judge_drill(steps({1, 120}, {83, 84}), false);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->word, "yes");
  EXPECT_EQ(verdict->steps_lost, 38u);
  EXPECT_EQ(verdict->why, "step 120 was reached on ada, it continued at step 83 on bob");
  EXPECT_EQ(judge_drill(steps({1, 120}, {121, 122}), false)->steps_lost, 0u);
}

TEST(DrillVerdict, StepsThatBeginAnewShowThatItDoesNot) {
  const auto verdict = judge_drill(steps({1, 120}, {1, 1}), false);
  ASSERT_TRUE(verdict);
  EXPECT_EQ(verdict->word, "no");
  EXPECT_THAT(verdict->why, ::testing::HasSubstr("does not load its checkpoint"));
}

TEST(DrillVerdict, OneNumberIsNoProgress) {
  EXPECT_FALSE(judge_drill(steps({1, 120}, {83, 83}), false));  // "resuming from step 83", and then it may hang
  EXPECT_EQ(judge_drill(steps({1, 120}, {83, 83}), true)->word, "unknown");
  DrillFacts ended = steps({1, 120}, {83, 83});
  ended.succeeded = true;
  EXPECT_EQ(judge_drill(ended, true)->word, "yes");
  // Both printed the same single number: it may have been done again, or begun anew.
  EXPECT_EQ(judge_drill(steps({100, 100}, {100, 200}), true)->word, "unknown");
}

TEST(DrillVerdict, ComparesTheFinestCountThatBothPrint) {
  DrillFacts made = steps({1, 120}, {83, 90});
  made.before["epoch"] = {1, 3};
  made.after["epoch"] = {1, 1};  // of a display that counts from the start
  EXPECT_EQ(judge_drill(made, false)->word, "yes");
  made.after.erase("step");
  EXPECT_EQ(judge_drill(made, false)->word, "no");
}

TEST(DrillVerdict, WithoutCountsTheCheckpointsTell) {
  DrillFacts made = facts();
  EXPECT_FALSE(judge_drill(made, false));
  EXPECT_EQ(judge_drill(made, true)->word, "unknown");
  made.saved_after = made.first;
  EXPECT_EQ(judge_drill(made, false)->word, "no");  // the same bytes again
  made.saved_after->root.bytes[0] = std::byte{2};
  EXPECT_FALSE(judge_drill(made, false));
  EXPECT_EQ(judge_drill(made, true)->word, "unknown");
  made.saved_after->files = 2;
  EXPECT_EQ(judge_drill(made, false)->word, "yes");
}

TEST(JobDrill, CountsTheHostAsLostAndPrefersAnother) {
  Driver job;
  job.run_on("ada");
  job.happen(CheckpointCommitted{job.state.epoch, {1}, "", 1});
  job.advance(5000);
  job.happen(Drilled{job.state.epoch});
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_EQ(job.state.avoided.at(0).host.value, "ada");
  EXPECT_EQ(job.state.lost, Duration{std::chrono::seconds{5}});
  EXPECT_THAT(job.due(), ::testing::UnorderedElementsAre("place", "settle/1/ada"));
  ASSERT_EQ(job.state.pending_cleanups.size(), 1u);
  EXPECT_TRUE(job.state.pending_cleanups[0].stale);
  EXPECT_TRUE(job.state.failures.empty());
  job.run_on("bob");
  EXPECT_EQ(job.state.attempt()->resumed_from, CheckpointSeq{1});
}

TEST(JobDrill, ChangesNothingForAnOtherEpochOrWhileItDoesNotRun) {
  Driver job;
  job.place("ada");
  State before = job.state;
  job.happen(Drilled{job.state.epoch});
  EXPECT_EQ(job.state, before);
  job.happen(PayloadStarted{job.state.epoch});
  before = job.state;
  job.happen(Drilled{{7}});
  EXPECT_EQ(job.state, before);
}

}  // namespace
}  // namespace gridctl::job::drill_test
