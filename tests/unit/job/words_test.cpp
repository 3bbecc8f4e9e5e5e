// SPDX-License-Identifier: Apache-2.0
// What people read of a job's moves, and what a resumed job forgets.
#include <gmock/gmock.h>

#include "driver.hpp"
#include "job/state.hpp"

namespace gridctl::job::words_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string text_of(const Driver& job, const std::string& kind) {
  std::string text;
  for (const Record& record : job.records)
    if (record.kind == kind) text = record.text;
  return text;
}

TEST(MoveWords, SayWhyAJobLeavesAndWhyItStays) {
  struct Row {
    std::string why, leaves, asks, stays;
  };
  for (const Row& row : std::vector<Row>{
           {std::string(k_for_deadline), "a is too risky for the deadline", ": the job moves when its next checkpoint is safe",
            "a keeps the job: no move could meet the deadline now"},
           {std::string(k_for_less), "a is more expensive than another host", ": the job moves when its next checkpoint is safe",
            "a keeps the job: a move would save too little now"},
           {std::string(k_for_priority), "a is needed more urgently", ": the job moves when its next checkpoint is safe",
            "a keeps the job: it is no longer needed more urgently"},
           {std::string(k_for_straggler), "a is slower than the other members", ": the job moves when its next checkpoint is safe",
            "a keeps its part of the job: it is no longer slower"},
           {std::string(k_to_grow), "more hosts are available for it", ": the job restarts with them when its next checkpoint is safe",
            "the gang stays as it is: the additional hosts are no longer available"},
           {"drained", "a is drained", ": the job moves when its next checkpoint is safe", "a takes jobs again: the job stays there"}}) {
    Driver job;
    job.run_on("a");
    job.happen(MoveRequested{job.state.epoch, row.why, 0, {}, "a reason"});
    EXPECT_EQ(text_of(job, "move_requested"), row.leaves + row.asks + ": a reason");
    EXPECT_EQ(job.state.reason, "moving");
    job.happen(MoveWithdrawn{job.state.epoch});
    EXPECT_EQ(text_of(job, "move_withdrawn"), row.stays);
    EXPECT_EQ(job.state.reason, "running");
    EXPECT_EQ(job.state.reason_text, "running on a");
    const std::size_t told = job.records.size();
    job.happen(MoveWithdrawn{job.state.epoch});
    EXPECT_EQ(job.records.size(), told) << "there was no wish";
    job.happen(MoveRequested{job.state.epoch, row.why, 0, {}, ""});
    job.happen(MoveDue{job.state.epoch});
    EXPECT_THAT(text_of(job, "moving"), HasSubstr(row.leaves));
    EXPECT_EQ(job.state.moving(), row.why);
    job.end({EndKind::stopped, -1, 0, ""});
    EXPECT_EQ(text_of(job, "moved_away"), row.leaves + (row.why == k_to_grow ? ": continuing with them" : ": continuing elsewhere"));
  }
}

TEST(Resume, ForgetsWhatHeldTheJobUpBefore) {
  Driver job;
  job.run_on("a");
  job.exit_with(1);
  for (int i = 0; i < 20 && job.state.visible() != JobState::failed; ++i) {
    job.run_on("a");
    job.exit_with(1);
  }
  ASSERT_EQ(job.state.visible(), JobState::failed);
  ASSERT_FALSE(job.state.failures.empty());
  job.state.avoided = {{{"a"}, "why"}};
  job.state.cancel = 5s;
  job.state.limit = "budget", job.state.limit_text = "used up", job.state.overtaken = "x";
  job.state.failures_max = 3, job.state.late = true, job.state.recovering = true;
  job.state.restarts_in_row = 2, job.state.start_failures_in_row = 3, job.state.gone_back = 1;
  job.happen(ResumeRequested{});
  EXPECT_TRUE(std::holds_alternative<Waiting>(job.state.phase));
  EXPECT_THAT(job.state.failures, IsEmpty());
  EXPECT_THAT(job.state.avoided, IsEmpty());
  EXPECT_FALSE(job.state.cancel);
  EXPECT_EQ(job.state.limit + job.state.limit_text + job.state.overtaken, "");
  EXPECT_EQ(job.state.failures_max, 0);
  EXPECT_FALSE(job.state.late);
  EXPECT_FALSE(job.state.recovering);
  EXPECT_EQ(job.state.restarts_in_row, 0);
  EXPECT_EQ(job.state.start_failures_in_row, 0);
  EXPECT_EQ(job.state.gone_back, 0);
  EXPECT_EQ(job.state.reason, "resumed");
  EXPECT_EQ(text_of(job, "resumed"), "resumed by the user");
}

}  // namespace
}  // namespace gridctl::job::words_test
