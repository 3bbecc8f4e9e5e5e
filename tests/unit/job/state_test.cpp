// SPDX-License-Identifier: Apache-2.0
#include "job/state.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"
#include "job/failure_detector.hpp"

namespace gridctl::job::state_test {
namespace {

using ::testing::ElementsAre;

TEST(JobState, GoesFromSubmitToSuccessAndLeavesTheHostClean) {
  Driver job;
  EXPECT_EQ(job.state.visible(), JobState::pending);
  EXPECT_THAT(job.due(), ElementsAre("place"));
  job.place("a");
  EXPECT_EQ(job.state.visible(), JobState::starting);
  EXPECT_THAT(job.due(), ElementsAre("launch/1/0"));
  job.happen(PayloadStarted{{1}});
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_THAT(job.due(), ElementsAre());
  job.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}});
  EXPECT_THAT(job.due(), ElementsAre("collect/1/0"));
  job.happen(Collected{{1}, ""});
  EXPECT_EQ(job.state.visible(), JobState::succeeded);
  EXPECT_THAT(job.due(), ElementsAre("settle/1/a"));
  EXPECT_TRUE(job.state.needs_controller());
  job.happen(CleanedUp{{"a"}, {1}});
  EXPECT_FALSE(job.state.needs_controller());
}

TEST(JobState, MovesToAnotherHostFromTheHeadWhenItsHostIsLost) {
  Driver job;
  job.run_on("a");
  job.happen(CheckpointCommitted{{1}, {1}, "", 1});
  job.happen(CheckpointCommitted{{1}, {2}, "", 2});
  job.advance(5000);
  job.lose();
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_THAT(job.due(), ElementsAre("place", "settle/1/a"));
  EXPECT_EQ(std::get<Waiting>(job.state.phase).backoff, Duration::zero());
  job.place("b");
  EXPECT_EQ(job.state.epoch.value, 2u);
  EXPECT_EQ(job.state.attempt()->resumed_from.value, 2u);
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  job.happen(PayloadStarted{{2}});
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_EQ(job.state.recoveries, 1);
  EXPECT_EQ(job.state.lost, Duration{std::chrono::milliseconds{5000}});
  EXPECT_TRUE(job.state.failures.empty());
}

TEST(JobState, IgnoresEverythingAStaleEpochSays) {
  Driver job;
  job.run_on("a");
  job.lose();
  job.run_on("b");
  const State before = job.state;
  job.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}});
  job.happen(PayloadStarted{{1}});
  job.happen(HostLost{{1}, {}});
  job.happen(Collected{{1}, ""});
  job.happen(LaunchFailed{{1}, "late", true, {}});
  EXPECT_EQ(job.state, before);
}

TEST(JobState, NeverChargesLostHostsToTheJob) {
  Spec spec;
  spec.recovery.max_failures = 1;
  Driver job(spec);
  for (int i = 0; i < 50; ++i) {
    job.run_on("h" + std::to_string(i));
    job.lose();
  }
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_TRUE(job.state.failures.empty());
  EXPECT_LE(std::get<Waiting>(job.state.phase).backoff, Duration{std::chrono::seconds{60}});
}

TEST(JobState, EndsAfterMaxFailuresAndNamesTheLimit) {
  Driver job;
  for (int i = 0; i < 3; ++i) {
    ASSERT_FALSE(is_final(job.state.visible()));
    job.run_on("a");
    job.exit_with(7);
    EXPECT_EQ(job.state.avoided.at(0).host.value, "a");
  }
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_EQ(job.state.reason, "program_failed");
  EXPECT_EQ(std::get<Done>(job.state.phase).exit_code, 7);
  EXPECT_NE(job.state.reason_text.find("failure 3 of 3, the limit of recovery.max_failures"), std::string::npos);
}

TEST(JobState, EndsWhenASecondHostShowsTheSameFailureAndNothingWasSaved) {
  Driver job;
  job.run_on("a");
  job.exit_with(7);
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  job.run_on("b");
  job.exit_with(7);
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_NE(job.state.reason_text.find("the same on 2 hosts: the fault is in the program"), std::string::npos);
}

TEST(JobState, GoesOnAfterTheSameFailureElsewhereWhenItGotFurther) {
  Driver job;
  job.run_on("a");
  job.exit_with(7);
  job.run_on("b");
  job.happen(CheckpointCommitted{job.state.epoch, {1}, "", 1});
  job.exit_with(7);
  EXPECT_EQ(job.state.visible(), JobState::recovering);
}

TEST(JobState, BuysNoSecondTryOfWhatNeverWorks) {
  for (const int code : {126, 127}) {
    Driver job;
    job.run_on("a");
    job.exit_with(code);
    EXPECT_EQ(job.state.visible(), JobState::failed) << code;
    EXPECT_EQ(std::get<Done>(job.state.phase).exit_code, code);
  }
  Driver setup;
  setup.run_on("a");
  setup.end({EndKind::exited, 1, 0, std::string(k_setup_failed)});
  EXPECT_EQ(setup.state.visible(), JobState::failed);
  Spec spec;
  spec.recovery.restart_on = {127};
  Driver wanted(spec);
  wanted.run_on("a");
  wanted.exit_with(127);
  EXPECT_EQ(wanted.state.visible(), JobState::recovering) << "the user's word is the last";
}

TEST(JobState, GivesAnImageASecondTryAndNotFive) {
  Driver job;
  job.place("a");
  job.end({EndKind::image_failed, -1, 0, "podman could not pull the image nosuch: manifest unknown"});
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  job.place("b");
  job.end({EndKind::image_failed, -1, 0, "podman could not pull the image nosuch: manifest unknown"});
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_EQ(job.state.reason, "image_failed");
  EXPECT_NE(job.state.reason_text.find("manifest unknown"), std::string::npos);
  EXPECT_TRUE(job.state.failures.empty()) << "it is no failure of its code";
}

TEST(JobState, ObeysTheExitCodesTheUserListed) {
  Spec spec;
  spec.recovery.restart_on = {33};
  spec.recovery.fail_on = {2};
  Driver job(spec);
  for (int i = 0; i < 10; ++i) {
    job.run_on("a");
    job.exit_with(33);
    ASSERT_EQ(job.state.visible(), JobState::recovering);
  }
  job.run_on("a");
  job.exit_with(2);
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_EQ(job.state.reason, "exit_code");
}

TEST(JobState, BacksOffUntilACheckpointShowsProgress) {
  Driver job;
  for (int i = 0; i < 4; ++i) {
    job.run_on("a");
    job.lose();
  }
  EXPECT_EQ(std::get<Waiting>(job.state.phase).backoff, Duration{std::chrono::seconds{4}});
  job.run_on("a");
  job.happen(CheckpointCommitted{job.state.epoch, {1}, "", 1});
  job.lose();
  EXPECT_EQ(std::get<Waiting>(job.state.phase).backoff, Duration::zero());
}

TEST(JobState, StopsBeforeItIsCancelledAndSettlesAfterwards) {
  Driver job;
  job.run_on("a");
  job.happen(CancelRequested{std::chrono::seconds{30}});
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  EXPECT_EQ(job.state.visible(), JobState::running);
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_EQ(job.state.visible(), JobState::cancelled);
  EXPECT_THAT(job.due(), ElementsAre("settle/1/a"));
}

TEST(JobState, CancelsAtOnceWhileItWaitsAndAgainstALostHost) {
  Driver waiting;
  waiting.happen(CancelRequested{{}});
  EXPECT_EQ(waiting.state.visible(), JobState::cancelled);
  EXPECT_FALSE(waiting.state.needs_controller());
  Driver lost;
  lost.run_on("a");
  lost.happen(CancelRequested{{}});
  lost.lose();
  EXPECT_EQ(lost.state.visible(), JobState::cancelled);
  EXPECT_THAT(lost.due(), ElementsAre("settle/1/a"));
}

TEST(JobState, IsStoppedByItsLimitAsByACancellationAndSaysWhy) {
  Driver job;
  job.run_on("a");
  job.happen(LimitReached{"budget", "its budget is used up"});
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  EXPECT_EQ(std::get<Stopping>(job.state.phase).grace, k_limit_grace);
  EXPECT_EQ(parse_state(to_json(job.state)).value(), job.state);
  job.happen(LimitReached{"max_duration", "it has run long"});  // one is enough
  EXPECT_EQ(job.state.limit, "budget");
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_EQ(job.state.visible(), JobState::cancelled);
  EXPECT_EQ(job.state.reason, "budget");
  EXPECT_EQ(job.state.reason_text, "its budget is used up; it ended with: stopped by request");
  job.happen(ResumeRequested{});
  EXPECT_EQ(job.state.limit, "");
  EXPECT_EQ(job.state.visible(), JobState::pending);
}

TEST(JobState, EndsAtItsLimitWhileItWaitsAndSucceedsWhenItWasDoneBefore) {
  Driver waiting;
  waiting.run_on("a");
  waiting.lose();
  waiting.happen(LimitReached{"budget", "its budget is used up"});
  EXPECT_EQ(waiting.state.visible(), JobState::cancelled);
  EXPECT_EQ(waiting.state.reason, "budget");
  Driver ready;
  ready.run_on("a");
  ready.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}});
  ready.happen(LimitReached{"budget", "its budget is used up"});
  ready.happen(Collected{{1}, ""});
  EXPECT_EQ(ready.state.visible(), JobState::succeeded);
}

TEST(JobState, IsTheUsersWhenTheyCancelWhatALimitStops) {
  Driver job;
  job.run_on("a");
  job.happen(LimitReached{"budget", "its budget is used up"});
  job.happen(CancelRequested{{}});
  EXPECT_EQ(std::get<Stopping>(job.state.phase).grace, Duration::zero());
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_EQ(job.state.reason, "cancelled");
}

TEST(JobState, TakesTheResultOfATwinThatWasDoneFirst) {
  Driver waiting;
  waiting.run_on("a");
  waiting.lose();
  waiting.happen(TwinSucceeded{"twin train-r2 was done first"});
  EXPECT_EQ(waiting.state.visible(), JobState::succeeded);
  EXPECT_EQ(std::get<Done>(waiting.state.phase).exit_code, 0);
  EXPECT_EQ(waiting.state.reason, "replica_succeeded");

  Driver running;
  running.run_on("a");
  running.happen(TwinSucceeded{"twin train-r2 was done first"});
  EXPECT_THAT(running.due(), ElementsAre("stop/1/0"));
  EXPECT_EQ(std::get<Stopping>(running.state.phase).grace, Duration::zero());
  EXPECT_EQ(running.state.epoch, Epoch{2}) << "what the attempt saves from now on would be taken for the result";
  EXPECT_EQ(parse_state(to_json(running.state)).value(), running.state);
  running.happen(AttemptEnded{{1}, {EndKind::signalled, -1, 9, ""}});
  running.happen(Collected{{1}, ""});
  EXPECT_EQ(running.state.visible(), JobState::succeeded);
  EXPECT_EQ(running.state.reason_text, "twin train-r2 was done first");
  EXPECT_THAT(running.due(), ElementsAre("settle/1/a"));
  running.happen(ResumeRequested{});
  EXPECT_EQ(running.state.overtaken, "");
  running.place("b");
  EXPECT_EQ(running.state.epoch, Epoch{3});
}

TEST(JobState, IsCancelledThoughATwinIsDoneMeanwhile) {
  Driver job;
  job.run_on("a");
  job.happen(CancelRequested{{}});
  job.happen(TwinSucceeded{"twin train-r2 was done first"});
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_EQ(job.state.visible(), JobState::cancelled);
}

TEST(JobState, KeepsAResultThatCameBeforeTheCancellation) {
  Driver job;
  job.run_on("a");
  job.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}});
  job.happen(CancelRequested{{}});
  job.happen(Collected{{1}, ""});
  EXPECT_EQ(job.state.visible(), JobState::succeeded);
}

TEST(JobState, KeepsAResultWhenTheHostDiesBeforeItsLastFilesAreFetched) {
  Driver job;
  job.run_on("a");
  job.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}});
  job.lose();
  EXPECT_EQ(job.state.visible(), JobState::succeeded);
}

TEST(JobState, NeverChangesAFinalStateExceptByResume) {
  Driver job;
  job.run_on("a");
  job.exit_with(0);
  const Phase done = job.state.phase;
  job.happen(CancelRequested{{}});
  job.exit_with(1);
  job.lose();
  job.place("b");
  EXPECT_EQ(job.state.phase, done);
  job.happen(ResumeRequested{CheckpointSeq{3}});
  EXPECT_EQ(job.state.visible(), JobState::pending);
  job.place("b");
  EXPECT_EQ(job.state.attempt()->resumed_from.value, 3u);
  EXPECT_EQ(job.state.recoveries, 0);
}

TEST(JobState, AdoptsAHigherEpochThatAHostKnows) {
  Driver job;
  job.place("a");
  job.happen(LaunchFailed{{1}, "stale epoch", false, {9}});
  job.place("a");
  EXPECT_EQ(job.state.epoch.value, 10u);
}

TEST(JobState, DoesNotBelieveAnImpossibleEpochAndAvoidsWhoClaimsIt) {
  Driver job;
  job.place("a");
  job.happen(LaunchFailed{{1}, "stale epoch", false, {(std::uint64_t{1} << 63) - 1}});
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided.front().host.value, "a");
  job.place("b");
  EXPECT_EQ(job.state.epoch.value, 2u);
}

TEST(JobState, AvoidsAHostWhereAttemptsEndBeforeTheySaveAnything) {
  Driver job;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(job.state.avoided.empty());
    job.place("a");
    job.end({EndKind::vanished, -1, 0, ""});
  }
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided.front().host.value, "a");
}

TEST(JobState, AvoidsAHostThatRefusesAgainAndAgain) {
  Driver job;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(job.state.avoided.empty());
    job.place("a");
    job.happen(LaunchFailed{job.state.epoch, "not today", false, {}, EndKind::start_failed, true});
  }
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided.front().host.value, "a");
}

TEST(JobState, WaitsForAFullDiskHoweverOften) {
  Driver job;
  for (int i = 0; i < 8; ++i) {
    job.place("a");
    job.happen(LaunchFailed{job.state.epoch, "no space", true, {}, EndKind::disk_full});
  }
  EXPECT_FALSE(is_final(job.state.visible()));
}

TEST(JobState, DoesNotHoldGarbledAnswersAgainstTheJob) {
  Driver job;
  for (int i = 0; i < 8; ++i) {
    job.place("a");
    job.happen(LaunchFailed{job.state.epoch, "a frame with a wrong checksum", true, {}, EndKind::absent});
  }
  EXPECT_FALSE(is_final(job.state.visible()));
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided.front().host.value, "a");
}

TEST(JobState, GivesUpWhenNoHostCanEvenStartIt) {
  Driver job;
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(is_final(job.state.visible()), false);
    job.place("h" + std::to_string(i));
    job.end({EndKind::start_failed, -1, 0, "no such image"});
  }
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_EQ(job.state.reason, "start_failed");
}

TEST(JobState, TakesAKillFromOutsideAsTheHostsFaultAndASegfaultAsTheJobs) {
  Driver job;
  job.run_on("a");
  job.end({EndKind::signalled, -1, 9, ""});
  EXPECT_TRUE(job.state.failures.empty());
  job.run_on("a");
  job.end({EndKind::signalled, -1, 11, ""});
  EXPECT_EQ(job.state.failures.size(), 1u);
}

TEST(JobState, FailsAtOnceWhenItsMemoryLimitKilledIt) {
  Driver job;
  job.run_on("a");
  job.end({EndKind::oom, -1, 0, "used 63.9 of 64 GiB"});
  EXPECT_EQ(job.state.visible(), JobState::failed);
  EXPECT_EQ(job.state.reason, "oom");
}

TEST(JobState, AsksTheSchedulerAgainWhenNothingFits) {
  Driver job;
  job.happen(NotPlaced{true, "0 of 2 providers fit: 2 busy"});
  ASSERT_EQ(job.effects.size(), 1u);
  EXPECT_EQ(job.state.reason, "waiting_for_provider");
  const std::size_t records = job.records.size();
  job.happen(NotPlaced{true, "0 of 2 providers fit: 2 busy"});
  EXPECT_EQ(job.effects.size(), 1u) << "the question must be asked again";
  EXPECT_EQ(job.records.size(), records) << "the same answer is recorded once";
}

TEST(JobState, SettlesTheOldestOfAHostsAttemptsFirst) {
  Driver job;
  for (const char* host : {"a", "b", "a"}) {
    job.run_on(host);
    job.lose();
  }
  EXPECT_EQ(job.due(), (std::vector<std::string>{"place", "settle/1/a", "settle/2/b"}));
  job.happen(CleanedUp{{"a"}, Epoch{1}});
  EXPECT_EQ(job.effects, (std::vector<Effect>{CleanUp{job.state.pending_cleanups.back()}}));
  EXPECT_EQ(job.due(), (std::vector<std::string>{"place", "settle/2/b", "settle/3/a"}));
}

TEST(JobState, ForgetsAHostThatTheUserRemoved) {
  Driver job;
  job.run_on("a");
  job.lose();
  job.happen(HostForgotten{{"a"}});
  EXPECT_TRUE(job.state.pending_cleanups.empty());
  job.run_on("b");
  job.happen(HostForgotten{{"b"}});
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_TRUE(job.state.pending_cleanups.empty());
}

TEST(JobState, ComesBackFromItsStoredFormUnchangedInEveryPhase) {
  Driver job;
  const auto check = [&] {
    const Result<State> again = parse_state(to_json(job.state));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, job.state);
  };
  check();
  job.place("a");
  check();
  job.happen(PayloadStarted{{1}});
  job.happen(CheckpointCommitted{{1}, {4}, "x", 4});
  check();
  job.happen(AttemptEnded{{1}, {EndKind::exited, 9, 0, "why"}});
  check();
  job.happen(Collected{{1}, ""});
  check();
  job.run_on("b");
  job.happen(CancelRequested{std::chrono::seconds{3}});
  check();
  job.end({EndKind::stopped, -1, 0, ""});
  check();
  EXPECT_FALSE(parse_state("{}"));
  EXPECT_FALSE(parse_state("nonsense"));
}

BootTime at_ms(std::int64_t ms) { return {ms * 1'000'000}; }

TEST(FailureDetector, GivesUpOnlyAfterLostAfterOfCountedSilence) {
  FailureDetector silence(std::chrono::seconds{5});
  silence.answered(at_ms(1000));
  for (int s = 1; s <= 59; ++s) silence.tick(at_ms(1000 + s * 1000), true);
  EXPECT_EQ(silence.judge(std::chrono::seconds{60}), Liveness::unreachable);
  silence.tick(at_ms(61000), true);
  EXPECT_EQ(silence.judge(std::chrono::seconds{60}), Liveness::lost);
  silence.answered(at_ms(61100));
  EXPECT_EQ(silence.judge(std::chrono::seconds{60}), Liveness::answering);
}

TEST(FailureDetector, DoesNotCountOurOwnSleepNorOurOwnNetworksTrouble) {
  FailureDetector silence(std::chrono::seconds{5});
  silence.answered(at_ms(1000));
  silence.tick(at_ms(8 * 3600 * 1000), true);  // the laptop slept
  EXPECT_EQ(silence.judge(std::chrono::seconds{60}), Liveness::answering);
  for (int s = 1; s <= 600; ++s) silence.tick(at_ms(8 * 3600 * 1000 + s * 1000), false);  // nobody answers
  EXPECT_EQ(silence.judge(std::chrono::seconds{60}), Liveness::answering);
  for (int nap = 1; nap <= 4; ++nap) silence.tick(at_ms(9 * 3600 * 1000 + nap * 4900), true);
  EXPECT_EQ(silence.judge(std::chrono::seconds{60}), Liveness::answering);
}

TEST(FailureDetector, BeginsAnewAfterOurOwnSleep) {
  FailureDetector silence(std::chrono::seconds{5});
  silence.answered(at_ms(1000));
  for (int s = 1; s <= 9; ++s) silence.tick(at_ms(1000 + s * 1000), true);
  silence.tick(at_ms(30'000), true);  // the host may have been back for long
  for (int s = 1; s <= 9; ++s) silence.tick(at_ms(30'000 + s * 1000), true);
  EXPECT_NE(silence.judge(std::chrono::seconds{10}), Liveness::lost);
  silence.tick(at_ms(40'000), true);
  EXPECT_EQ(silence.judge(std::chrono::seconds{10}), Liveness::lost);
}

}  // namespace
}  // namespace gridctl::job::state_test
