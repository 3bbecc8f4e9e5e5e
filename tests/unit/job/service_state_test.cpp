// SPDX-License-Identifier: Apache-2.0
// The state machine of a service's replica: no end of its program is its own.
#include <gtest/gtest.h>

#include "unit/job/driver.hpp"

namespace gridctl::job {
namespace {

Spec service_spec() {
  Spec spec;
  spec.service.emplace().port = 8000;
  spec.recovery.endless = true;
  spec.recovery.max_failures = 3;
  spec.recovery.fail_on = {77};
  return spec;
}

TEST(ServiceState, AServerThatEndsIsStartedAgainWhateverItsExitCode) {
  Driver job(service_spec());
  for (const int code : {0, 1, 139, 0, 2}) {
    job.run_on("ada");
    job.advance(120'000);  // it served for a while
    job.exit_with(code);
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase)) << code;
    EXPECT_EQ(job.rows.back().state, "failed");
    EXPECT_EQ(std::get<Waiting>(job.state.phase).backoff, Duration{}) << "a long run is followed by no pause";
  }
  EXPECT_TRUE(job.recorded("server_ended"));
}

TEST(ServiceState, TheStoredStateKnowsThatItIsAService) {
  Driver job(service_spec());
  job.run_on("ada");
  const Result<State> again = parse_state(to_json(job.state));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, job.state);
  EXPECT_TRUE(again->policy.endless);
}

TEST(ServiceState, AServerThatNeverRunsForLongIsNotPaidForEver) {
  Driver job(service_spec());
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase)) << run;
    job.run_on("ada");
    job.advance(5'000);
    job.exit_with(0);
  }
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_NE(job.state.reason_text.find("short run 3 of 3"), std::string::npos) << job.state.reason_text;
}

TEST(ServiceState, TheUserEndsIt) {
  Driver job(service_spec());
  job.run_on("ada");
  job.happen(CancelRequested{std::chrono::seconds{5}});
  job.exit_with(0);
  EXPECT_EQ(job.state.visible(), JobState::cancelled) << "a server that obeys has not succeeded";
  Driver other(service_spec());
  other.run_on("ada");
  other.exit_with(77);
  EXPECT_EQ(other.state.visible(), JobState::failed) << "recovery.on_exit.fail";
}

TEST(ServiceState, ALostHostIsNoEndOfTheServer) {
  Driver job(service_spec());
  for (int run = 1; run <= 5; ++run) {
    job.run_on("ada");
    job.lose();
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase)) << run;
  }
  EXPECT_TRUE(job.state.failures.empty());
}

}  // namespace
}  // namespace gridctl::job
