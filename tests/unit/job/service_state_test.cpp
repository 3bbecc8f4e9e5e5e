// SPDX-License-Identifier: Apache-2.0
// The state machine of a service's replica: no end of its program is its own.
#include <gtest/gtest.h>

#include "unit/job/driver.hpp"

namespace gridctl::job::service_state_test {
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
    job.happen(ServerReady{job.state.epoch});
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

TEST(ServiceState, AServerThatIsNeverReadyIsNotPaidForEver) {
  Driver job(service_spec());
  for (int run = 1; run <= 3; ++run) {
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase)) << run;
    job.run_on("ada");
    job.advance(600'000);  // a model may load for long before it fails
    job.exit_with(0);
  }
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_EQ(job.state.reason, "never_ready");
  EXPECT_NE(job.state.reason_text.find("failure 3 in a row, of at most 3"), std::string::npos) << job.state.reason_text;
}

TEST(ServiceState, AReplicaOfAServiceThatHasServedIsTriedForEverAndEverMoreSeldom) {
  Driver job(service_spec());
  job.happen(ServerReady{});  // another replica was ready
  Duration before{};
  for (int run = 1; run <= 20; ++run) {
    job.run_on("ada");
    job.advance(5'000);
    job.exit_with(1);
    ASSERT_TRUE(std::holds_alternative<Waiting>(job.state.phase)) << run;
    const bool longer = run <= 4 || std::get<Waiting>(job.state.phase).backoff >= before;
    EXPECT_TRUE(longer) << run;
    before = std::get<Waiting>(job.state.phase).backoff;
  }
  EXPECT_EQ(before, std::chrono::hours{1});
  job.run_on("bob");
  job.happen(ServerReady{job.state.epoch});
  EXPECT_TRUE(job.recorded("server_ready"));
  job.advance(120'000);
  job.exit_with(1);
  EXPECT_EQ(job.state.failures.size(), 1U) << "it has served for a while";
}

TEST(ServiceState, AServerThatIsReadyOnlyForAMomentIsNoSuccess) {
  Driver job(service_spec());
  for (int run = 1; run <= 3; ++run) {
    job.run_on("ada");
    job.happen(ServerReady{job.state.epoch});
    job.happen(ServerReady{Epoch{99}});  // of an attempt that is not
    job.advance(5'000);
    job.exit_with(1);
  }
  EXPECT_EQ(job.state.failures.size(), 3U);
  EXPECT_EQ(job.state.ready.epoch, Epoch{3});
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
}  // namespace gridctl::job::service_state_test
