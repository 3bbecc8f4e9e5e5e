// SPDX-License-Identifier: Apache-2.0
#include "ui/job_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::ui::job_page_test {
namespace {
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime k_page_now{1'800'000'060'000};

JobPage a_page() {
  JobPage page;
  page.job.id = JobId{"abcdefghijkmn"};
  page.job.name = "train";
  page.job.state = job::JobState::succeeded;
  page.job.submitted_at = WallTime{k_page_now.ms - 60'000};
  page.job.ended_at = k_page_now;
  page.job.recoveries = 1;
  for (std::uint64_t number = 1; number <= 2; ++number) {
    registry::AttemptRecord attempt;
    attempt.number = AttemptNumber{number};
    attempt.provider = HostName{number == 1 ? "ada" : "bob"};
    attempt.state = number == 1 ? "lost" : "succeeded";
    attempt.started_at = WallTime{page.job.submitted_at.ms + static_cast<std::int64_t>(number - 1) * 30'000};
    attempt.ended_at = WallTime{attempt.started_at->ms + 20'000};
    attempt.resumed_from = CheckpointSeq{number - 1};
    page.attempts.push_back(attempt);
    page.curves.push_back({attempt.number, {{10.0 * static_cast<double>(number), 3}, {20.0 * static_cast<double>(number), 2}}});
  }
  page.number = "loss";
  registry::Checkpoint checkpoint;
  checkpoint.seq = CheckpointSeq{1};
  checkpoint.attempt = AttemptNumber{1};
  checkpoint.created_at = WallTime{k_page_now.ms - 45'000};
  checkpoint.bytes = 2048;
  page.checkpoints = {checkpoint};
  page.version = "1.2.3";
  return page;
}

TEST(JobPage, ShowsAttemptsCurvesAndCheckpoints) {
  const std::string page = job_page(a_page(), k_page_now);
  EXPECT_TRUE(page.starts_with(k_page_mark));
  EXPECT_THAT(page, AllOf(HasSubstr("train <span class=good>SUCCEEDED"), HasSubstr("1  ada  lost"), HasSubstr("2  bob  succeeded"),
                          HasSubstr("<h2>loss</h2>"), HasSubstr("step 10"), HasSubstr("step 40"),
                          HasSubstr("checkpoint 1, 2.0 KiB"), HasSubstr("<b>1m</b>")));
  // The attempt that began from checkpoint 1 has the second colour, in its bar and in its curve.
  EXPECT_THAT(page, AllOf(HasSubstr("<rect class=b1"), HasSubstr("<path class=l1")));
}

TEST(JobPage, NeedsNothingFromElsewhere) {
  EXPECT_THAT(job_page(a_page(), k_page_now), AllOf(Not(HasSubstr("http")), Not(HasSubstr("src=")), Not(HasSubstr("url("))));
}

TEST(JobPage, EscapesEveryForeignText) {
  const std::string evil = "<script>alert(1)</script>\"'&\x1b[31m";
  JobPage page = a_page();
  page.job.name = page.job.machine.reason_text = page.job.resources = page.number = evil;
  for (registry::AttemptRecord& attempt : page.attempts)
    attempt.state = attempt.reason = attempt.placement_reason = attempt.provider.value = evil;
  page.checkpoints.front().how = evil;
  page.events = {{1, page.job.id, k_page_now, "kind", evil, {}, {}, {}}};
  EXPECT_THAT(job_page(page, k_page_now), AllOf(Not(HasSubstr("<script")), Not(HasSubstr("\x1b")), HasSubstr("&lt;script&gt;")));
}

TEST(JobPage, StaysSmall) {
  JobPage page = a_page();
  page.events.assign(20'000, {1, page.job.id, k_page_now, "kind", std::string(2000, 'x'), {}, {}, {}});
  page.checkpoints.assign(5'000, page.checkpoints.front());
  for (double step = 0; step < 100'000; ++step) page.curves.front().points.emplace_back(step, 1 / (1 + step));
  EXPECT_LT(job_page(page, k_page_now).size(), 300'000u);
}

TEST(JobPage, WithoutAnAttemptSaysSo) {
  JobPage page;
  page.job.submitted_at = k_page_now;
  EXPECT_THAT(job_page(page, k_page_now), HasSubstr("No attempt has started"));
}

}  // namespace
}  // namespace gridctl::ui::job_page_test
