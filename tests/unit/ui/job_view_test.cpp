// SPDX-License-Identifier: Apache-2.0
#include "ui/job_view.hpp"

#include <gtest/gtest.h>

#include "ui/width.hpp"

namespace gridctl::ui::job_view_test {
namespace {

const WallTime k_now{1'800'000'060'000};

JobView a_view() {
  JobView view;
  view.job.id = JobId{"abcdefghijkmn"};
  view.job.name = "train";
  view.job.state = job::JobState::running;
  view.job.submitted_at = WallTime{k_now.ms - 60'000};
  registry::AttemptRecord attempt;
  attempt.number = AttemptNumber{1};
  attempt.provider = HostName{"ada"};
  attempt.state = "running";
  attempt.started_at = WallTime{k_now.ms - 50'000};
  view.attempts = {attempt};
  return view;
}

TEST(JobBlock, ShowsStateAttemptAndCheckpoint) {
  JobView view = a_view();
  view.head = registry::Checkpoint{};
  view.head->seq = CheckpointSeq{3};
  view.head->bytes = 2048;
  view.head->created_at = WallTime{k_now.ms - 5'000};
  view.checkpoints = 2;
  const std::vector<std::string> lines = job_block(view, k_now, 100, {});
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "RUNNING  train (abcdefghijkmn)  1m");
  EXPECT_EQ(lines[1], "  attempt 1  ada           running    50s");
  EXPECT_EQ(lines[2], "  checkpoint abcdefghijkmn@3  2.0 KiB  5s ago  2 kept");
}

TEST(JobBlock, SaysWhatOfAStartIsUnderWay) {
  JobView view = a_view();
  view.job.state = job::JobState::starting;
  view.job.reason = "starting";
  view.job.machine.reason_text = "starting on ada: preparing the image";
  EXPECT_EQ(job_block(view, k_now, 100, {})[0],
            "STARTING  train (abcdefghijkmn)  1m  starting on ada: preparing the image");
}

TEST(JobBlock, FitsTheTerminal) {
  JobView view = a_view();
  view.job.reason = std::string(200, 'x');
  for (const std::string& line : job_block(view, k_now, 40, {})) EXPECT_LE(display_width(line), 40u) << line;
}

TEST(JobBlock, ListsOnlyTheLastAttempts) {
  JobView view = a_view();
  for (std::uint64_t i = 2; i <= 9; ++i) {
    view.attempts.push_back(view.attempts.front());
    view.attempts.back().number = AttemptNumber{i};
  }
  const std::vector<std::string> lines = job_block(view, k_now, 100, {});
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_NE(lines.back().find("attempt 9"), std::string::npos);
}

TEST(EventLine, IsOneHarmlessLine) {
  registry::EventRecord event;
  event.at = k_now;
  event.text = "attempt 1\non \033[31mada";
  EXPECT_EQ(event_line(event, k_now, {}), "08:01:00  attempt 1 | on ^[[31mada");
  EXPECT_TRUE(event_line(event, WallTime{k_now.ms + 86'400'000}, {}).ends_with(" 08:01:00  attempt 1 | on ^[[31mada"))
      << "with its date, on another day";
}

TEST(EventLine, ShowsATracebackAsItWasWritten) {
  registry::EventRecord event;
  event.at = k_now;
  event.kind = "last_output";
  event.text = "Traceback:\n  File \"a.py\"\nKeyError: \033[31mx";
  EXPECT_EQ(event_line(event, k_now, {}),
            "08:01:00  last output:\n    Traceback:\n      File \"a.py\"\n    KeyError: ^[[31mx");
}

}  // namespace
}  // namespace gridctl::ui::job_view_test
