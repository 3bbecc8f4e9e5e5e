// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"
#include "job/state.hpp"

namespace gridctl::job::state_run_test {
namespace {

using ::testing::HasSubstr;

TEST(JobStart, TellsEachStepOnceWithItsDuration) {
  Driver job;
  job.place("a");
  job.advance(1500);
  job.happen(LaunchAccepted{{1}});
  EXPECT_THAT(job.records.back().text, HasSubstr("(sending its files: 1.5s)"));
  job.happen(Preparing{{1}, "workdir"});
  const std::size_t records = job.records.size();
  job.happen(Preparing{{1}, "workdir"});
  EXPECT_EQ(job.records.size(), records);
  EXPECT_EQ(job.state.reason_text, "starting on a: filling the working directory");
  job.advance(200);
  job.happen(Preparing{{1}, "setup"});
  EXPECT_THAT(job.records.back().text, HasSubstr("running setup (filling the working directory: 200ms)"));
  job.advance(61'000);
  job.happen(PayloadStarted{{1}});
  EXPECT_THAT(job.records.back().text, HasSubstr("1m2s after placement (running setup: 1m1s)"));
  EXPECT_EQ(job.state.reason_text, "running on a");
}

TEST(JobStart, DoesNotRepeatWhatIsNoWord) {
  Driver job;
  job.place("a");
  const State before = job.state;
  for (const char* word : {"", "a word", "\033[2J", "Setup", "a-very-long-word-indeed"})
    job.happen(Preparing{{1}, word});
  EXPECT_EQ(job.state, before);
}

}  // namespace
}  // namespace gridctl::job::state_run_test
