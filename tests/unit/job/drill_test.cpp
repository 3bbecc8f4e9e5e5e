// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"
#include "job/drill.hpp"

namespace gridctl::job::drill_test {
namespace {

using Range = ProgressReader::Range;

std::map<std::string, Range> read(std::string_view text) {
  ProgressReader reader;
  reader.read(text);
  return reader.ranges();
}

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::map<std::string, ProgressReader::Range> read_line(const std::string& text) {
  ProgressReader reader;
  reader.read(text + "\n");
  return reader.ranges();
}

DrillFacts facts_of(ProgressReader::Range before, ProgressReader::Range after) {
  DrillFacts facts;
  facts.from = "ada";
  facts.to = "bob";
  facts.before["step"] = before;
  facts.after["step"] = after;
  return facts;
}

std::string word_of(const std::optional<DrillVerdict>& verdict) { return verdict ? verdict->word : "none"; }

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

TEST(ProgressReader, TakesANumberUpToFourCharactersAway) {
  EXPECT_EQ(read_line("step:    5").count("step"), 0u);
  EXPECT_EQ(read_line("step:   5").at("step").highest, 5u);
  EXPECT_EQ(read_line("step 123456789012345").at("step").highest, 123456789012345u);
  EXPECT_EQ(read_line("step 1234567890123456").count("step"), 0u) << "sixteen digits are no count";
  EXPECT_EQ(read_line("STEP 7").at("step").highest, 7u);
  EXPECT_EQ(read_line("footstep 7").count("step"), 0u);
  EXPECT_EQ(read_line("footstep 7 step 8").at("step").highest, 8u) << "the next place where the word stands";
  EXPECT_EQ(read_line("step12").count("step"), 0u);
  EXPECT_EQ(read_line("step 3\rstep 9\nstep 5").at("step"), (ProgressReader::Range{3, 9}));
}

TEST(DrillVerdict, IsJudgedAtEachEdgeOfItsCounts) {
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {1, 3}), false)), "no");
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {2, 3}), false)), "yes");
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {2, 2}), false)), "none") << "one number is no progress";
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {2, 2}), true)), "unknown");
  EXPECT_EQ(word_of(judge_drill(facts_of({5, 5}, {5, 6}), false)), "none") << "one number tells not where it began";
  DrillFacts done = facts_of({1, 10}, {11, 11});
  done.succeeded = true;
  EXPECT_EQ(word_of(judge_drill(done, false)), "yes");
  EXPECT_EQ(judge_drill(done, false)->steps_lost, 0u);
  EXPECT_EQ(judge_drill(facts_of({1, 10}, {10, 12}), false)->steps_lost, 1u);
  EXPECT_EQ(judge_drill(facts_of({1, 10}, {8, 12}), false)->steps_lost, 3u);
  EXPECT_EQ(judge_drill(facts_of({1, 10}, {15, 16}), false)->steps_lost, 0u);
}

TEST(DrillVerdict, OfCheckpointsWantsMoreFilesThanWereRestored) {
  DrillFacts facts;
  facts.from = "ada", facts.to = "bob";
  facts.first.root.bytes[0] = std::byte{1};
  facts.restored.files = 3;
  facts.saved_after = SavedState{{5}, {}, 3};
  EXPECT_EQ(word_of(judge_drill(facts, false)), "none");
  EXPECT_THAT(judge_drill(facts, true)->why, HasSubstr("it saved a checkpoint on bob"));
  facts.saved_after->files = 4;
  EXPECT_EQ(word_of(judge_drill(facts, false)), "yes");
  facts.saved_after->root = facts.first.root;
  EXPECT_EQ(word_of(judge_drill(facts, false)), "no");
  facts.saved_after.reset();
  EXPECT_EQ(word_of(judge_drill(facts, false)), "none");
  EXPECT_THAT(judge_drill(facts, true)->why, HasSubstr("it ran on bob"));
  facts.succeeded = true;
  EXPECT_THAT(judge_drill(facts, true)->why, HasSubstr("it finished on bob"));
}

}  // namespace
}  // namespace gridctl::job::drill_test
