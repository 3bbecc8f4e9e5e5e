// SPDX-License-Identifier: Apache-2.0
// Starts that come to nothing: each try comes later, and none for ever.
#include "job/setback.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "driver.hpp"

namespace gridctl::job::setback_test {
namespace {

Duration backoff_of(const Driver& driver) { return std::get<Waiting>(driver.state.phase).backoff; }
bool is_waiting(const Driver& driver) { return std::holds_alternative<Waiting>(driver.state.phase); }

void refuse(Driver& driver, const std::string& host) {
  driver.place(host);
  driver.happen(LaunchFailed{.epoch = driver.state.epoch, .detail = "not ours", .host_fault = false, .refused = true});
}

End killed(int signal) { return {EndKind::signalled, -1, signal, ""}; }

TEST(Setback, MakesAHostThatRefusesRestLongerEachTimeUntilAJobStartsThere) {
  Driver driver;
  refuse(driver, "h1");
  EXPECT_EQ(why_resting(driver.state.setbacks, {"h1"}, driver.at()), "");  // the first retry is immediate
  for (const int rest : {1, 2, 4, 8, 16, 32, 60, 60}) {
    refuse(driver, "h1");
    EXPECT_NE(why_resting(driver.state.setbacks, {"h1"}, {driver.now_ms + rest * 1000 - 1}), "");
    EXPECT_EQ(why_resting(driver.state.setbacks, {"h1"}, {driver.now_ms + rest * 1000}), "");
  }
  const std::string why = why_resting(driver.state.setbacks, {"h1"}, driver.at());
  EXPECT_NE(why.find("9 times in a row (not ours); the next attempt is at "), std::string::npos) << why;
  EXPECT_EQ(why_resting(driver.state.setbacks, {"h2"}, driver.at()), "");
  driver.run_on("h1");
  EXPECT_TRUE(driver.state.setbacks.empty());
}

TEST(Setback, TriesAHostThatWasOutOfReachSoonerAgain) {
  Driver driver;
  for (int i = 0; i < 9; ++i) {
    driver.place("h1");
    driver.happen(LaunchFailed{.epoch = driver.state.epoch, .detail = "no route", .host_fault = false});
  }
  EXPECT_EQ(backoff_of(driver), std::chrono::seconds{10});
  EXPECT_NE(why_resting(driver.state.setbacks, {"h1"}, driver.at()), "");
  EXPECT_EQ(why_resting(driver.state.setbacks, {"h1"}, {driver.now_ms + 10'000}), "");
}

TEST(Setback, IsForgottenWithItsHostAndWhenTheUserResumes) {
  Driver driver;
  refuse(driver, "h1");
  refuse(driver, "h2");
  driver.happen(HostForgotten{{"h1"}});
  ASSERT_EQ(driver.state.setbacks.size(), 1u);
  driver.happen(CancelRequested{});
  driver.happen(ResumeRequested{});
  EXPECT_TRUE(driver.state.setbacks.empty());
}

TEST(Setback, DoesNotRestLongerBecauseAClockWasSetBack) {
  std::vector<Setback> list;
  for (int i = 0; i < 9; ++i) note_setback(list, {"h1"}, Cause::refused, "", {1'000'000'000});
  EXPECT_EQ(why_resting(list, {"h1"}, {1'000'000}), "");
}

TEST(Setback, DoesNotCountARoomThatWasTakenAMomentAgo) {
  Driver driver;
  driver.place("h1");
  driver.happen(LaunchFailed{.epoch = driver.state.epoch, .detail = "GPU is held", .host_fault = false, .busy = true});
  EXPECT_TRUE(driver.state.setbacks.empty());
  EXPECT_TRUE(std::get<Waiting>(driver.state.phase).for_room);
}

TEST(Setback, StopsAJobThatNoHostCanStart) {
  Driver driver;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(is_waiting(driver));
    driver.place("h" + std::to_string(i));
    driver.happen(LaunchFailed{
        .epoch = driver.state.epoch, .detail = "the secret K is gone", .host_fault = false, .hopeless = true});
  }
  EXPECT_EQ(driver.state.visible(), JobState::failed);
  EXPECT_EQ(driver.state.reason, "inputs_lost");
  EXPECT_NE(driver.state.reason_text.find("the secret K is gone"), std::string::npos);
}

TEST(Setback, ChargesAProgramThatKillsItselfAgainAndAgain) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    Driver driver;
    int attempts = 0;
    for (; attempts < 20 && is_waiting(driver); ++attempts) {
      driver.run_on("h" + std::to_string(attempts % 3));
      driver.end(killed(signal));
    }
    EXPECT_EQ(driver.state.visible(), JobState::failed);
    EXPECT_EQ(driver.state.reason, "program_failed");
    EXPECT_LE(attempts, 5);
  }
}

TEST(Setback, ChargesItAlthoughItsFilesAreSavedAtEachEnd) {
  Driver driver;
  int attempts = 0;
  for (; attempts < 20 && is_waiting(driver); ++attempts) {
    driver.run_on("h1");
    driver.advance(2000);
    driver.happen(AttemptEnded{driver.state.epoch, killed(SIGTERM)});
    driver.happen(CheckpointCommitted{driver.state.epoch, {static_cast<std::uint64_t>(attempts) + 1}, ""});
    driver.happen(Collected{driver.state.epoch, ""});
    if (is_waiting(driver) && attempts > 1) {
      EXPECT_GE(backoff_of(driver), std::chrono::seconds{1});
    }
  }
  EXPECT_EQ(driver.state.visible(), JobState::failed);
  EXPECT_LE(attempts, 6);
}

TEST(Setback, DoesNotChargeKillsThatComeBetweenTwoCheckpoints) {
  Driver driver;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(is_waiting(driver)) << i;
    driver.run_on("h" + std::to_string(i % 3));
    driver.advance(90'000);
    driver.happen(CheckpointCommitted{driver.state.epoch, {static_cast<std::uint64_t>(i) + 1}, ""});
    driver.advance(30'000);
    driver.end(killed(SIGKILL));
  }
  EXPECT_TRUE(driver.state.failures.empty());
}

TEST(LastWordsOfAnAttempt, StopTheJobAndAreItsReason) {
  Driver driver;
  driver.run_on("h1");
  driver.happen(AttemptEnded{driver.state.epoch, {EndKind::exited, 1, 0, ""}});
  driver.happen(
      Collected{driver.state.epoch, "", 0, "", {Advice::stop, "a module is missing", "ModuleNotFoundError: x"}});
  EXPECT_EQ(driver.state.visible(), JobState::failed);
  EXPECT_NE(driver.state.reason_text.find("a module is missing (\"ModuleNotFoundError: x\")"), std::string::npos);
  EXPECT_NE(driver.state.reason_text.find("another attempt would end in the same way"), std::string::npos);
}

TEST(LastWordsOfAnAttempt, BlameTheHostTwiceAndThenTheProgram) {
  Driver driver;
  int attempts = 0;
  for (; attempts < 20 && is_waiting(driver); ++attempts) {
    driver.run_on("h" + std::to_string(attempts));
    driver.happen(AttemptEnded{driver.state.epoch, {EndKind::exited, 1, 0, ""}});
    driver.happen(Collected{
        driver.state.epoch, "", 0, "", {Advice::blame_host, "the host's disk is full", "No space left on device"}});
    if (attempts < 2) {
      EXPECT_TRUE(driver.state.failures.empty());
      EXPECT_EQ(driver.state.avoided.back().host.value, "h" + std::to_string(attempts));
    }
  }
  EXPECT_EQ(driver.state.visible(), JobState::failed);
  EXPECT_LE(attempts, 5);
}

TEST(LastWordsOfAnAttempt, GiveWayToTheExitCodesThatTheUserListed) {
  Spec spec;
  spec.recovery.restart_on = {1};
  Driver driver(spec);
  driver.run_on("h1");
  driver.happen(AttemptEnded{driver.state.epoch, {EndKind::exited, 1, 0, ""}});
  driver.happen(Collected{driver.state.epoch, "", 0, "", {Advice::stop, "a number became NaN", "Loss is nan"}});
  EXPECT_TRUE(is_waiting(driver));
}

TEST(LastWordsOfAnAttempt, StartAProgramThatMakesItsDirectoryAgainWithoutOne) {
  Spec spec;
  spec.recovery.max_failures = 0;
  Driver driver(spec);
  driver.run_on("h1");
  driver.happen(AttemptEnded{driver.state.epoch, {EndKind::exited, 1, 0, ""}});
  driver.happen(Collected{driver.state.epoch, "", 0, "", {Advice::restart, "it makes it", "out: File exists"}, true});
  EXPECT_TRUE(is_waiting(driver));
  EXPECT_TRUE(driver.state.late_directory);
  EXPECT_TRUE(driver.state.failures.empty());
}

TEST(Setback, ComesBackFromTheStoredState) {
  Driver driver;
  refuse(driver, "h1");
  refuse(driver, "h1");
  driver.run_on("h2");
  driver.happen(AttemptEnded{driver.state.epoch, {EndKind::exited, 1, 0, ""}});
  driver.happen(Collected{driver.state.epoch, "", 0, "", {Advice::restart, "a port is in use", "bind: in use"}});
  const Result<State> again = parse_state(to_json(driver.state));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, driver.state);
}

}  // namespace
}  // namespace gridctl::job::setback_test
