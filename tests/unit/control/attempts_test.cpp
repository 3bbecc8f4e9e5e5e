// SPDX-License-Identifier: Apache-2.0
// Attempts on hosts over lines by hand: what is asked of hosts, what their words become, and what is told of it.
#include "control/follow/attempts.hpp"

#include "control/reach/pace.hpp"
#include "on_hosts.hpp"
#include "wire/own.hpp"

namespace gridctl::control::attempts_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using testing::tree;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// --- Starting --------------------------------------------------------------------------------------------------------

TEST_F(OnHosts, AJobThatWaitsIsPlacedWhenItIsTime) {
  submit("job");
  EXPECT_THAT(pacer.asked, Contains(std::pair("job", Duration{})));
}

TEST_F(OnHosts, AJobThatIsPlacedIsLaunchedThere) {
  pacer.interval.every = 90s;
  pacer.interval.pause = 40s;
  launched([](job::Spec& spec) { spec.recovery.lease = 5h; });
  EXPECT_THAT(asked(), ElementsAre("prepare", "start"));
  const auto start = wire::parse_start(script.payloads["start"]);
  ASSERT_THAT(start, IsOk());
  EXPECT_EQ(start->lease, 5h);
  EXPECT_EQ(start->spec.job.value, "job");
  EXPECT_EQ(start->spec.epoch.value, 1u);
  EXPECT_EQ(start->spec.envs.at("GRIDCTL_CKPT_INTERVAL"), "90");
  EXPECT_EQ(start->spec.checkpoint_min_interval, 40s);
  EXPECT_FALSE(start->spec.restore);
  EXPECT_EQ(start->spec.envs.at("GRIDCTL_RESTART_REASON"), "");
  EXPECT_EQ(job("job").state().attempt()->lead().part, job::Part::promised);
  later(10s);
  EXPECT_THAT(asked(), IsEmpty()) << "once";
}

TEST_F(OnHosts, AFixedIntervalIsToldAsItIs) {
  pacer.interval.every = 90s;
  launched([](job::Spec& spec) {
    spec.checkpoint.interval = job::CheckpointPolicy::Interval::fixed;
    spec.checkpoint.every = 77s;
  });
  const auto start = wire::parse_start(script.payloads["start"]);
  EXPECT_EQ(start->spec.envs.at("GRIDCTL_CKPT_INTERVAL"), "77");
  EXPECT_EQ(start->spec.checkpoint_min_interval, 77s);
}

TEST_F(OnHosts, ANextAttemptBeginsFromTheCheckpointAndKnowsWhy) {
  runs();
  says(wire::AttemptPhase::running, saved(1));
  lost();
  place("job", "bob", 2, false);
  run.settle();
  EXPECT_THAT(asked(), ElementsAre("push 1", "prepare", "start"));
  const auto start = wire::parse_start(script.payloads["start"]);
  EXPECT_EQ(start->spec.restore, tree(1));
  EXPECT_EQ(start->spec.envs.at("GRIDCTL_RESTART_REASON"), "host_lost");
  EXPECT_EQ(start->spec.envs.at("GRIDCTL_RESUME_FROM"), "job@1");
}

TEST_F(OnHosts, WithoutItsSecretsAJobIsNotStarted) {
  launched([](job::Spec& spec) { spec.secrets = {"TOKEN"}; });
  EXPECT_THAT(asked(), Not(Contains("prepare")));
  EXPECT_THAT(job("job").state().reason_text, HasSubstr("the value of secret TOKEN is missing from the state directory"));
  EXPECT_THAT(job("job").state().avoided, IsEmpty()) << "no host is to blame";
}

TEST_F(OnHosts, SecretsGoAlongAndAreForgottenAtTheEnd) {
  ASSERT_THAT(folders.keep_secrets({"job"}, {{"TOKEN", "hunter2hunter2"}}), IsOk());
  launched([](job::Spec& spec) { spec.secrets = {"TOKEN"}; });
  EXPECT_EQ(wire::parse_start(script.payloads["start"])->secrets.at("TOKEN"), "hunter2hunter2");
  book.apply({"job"}, job::HostForgotten{{"ada"}});
  book.apply({"job"}, job::CancelRequested{});
  EXPECT_FALSE(os::exists(dir / "secrets/job"));
}

TEST_F(OnHosts, AStartWhoseAnswerIsLostIsAskedForAgain) {
  script.replies["start"] = {make_error(Code::timed_out, "silence"), wire::encode(wire::StartReply{true})};
  launched();
  EXPECT_THAT(asked(), ElementsAre("prepare", "start"));
  EXPECT_NE(job("job").in<job::Launching>(), nullptr);
  later(k_launch_retry - 100ms);
  EXPECT_THAT(asked(), IsEmpty());
  later(100ms);
  EXPECT_THAT(asked(), ElementsAre("prepare", "start"));
  EXPECT_EQ(job("job").state().attempt()->lead().part, job::Part::promised);
}

TEST_F(OnHosts, ARefusalForRoomIsRemembered) {
  script.replies["start"] = {make_error(Code::busy, "GPU-1 is held")};
  launched();
  EXPECT_THAT(job("job").state().reason_text, HasSubstr("GPU-1 is held"));
  EXPECT_THAT(job("job").state().avoided, IsEmpty());
  EXPECT_EQ(host("ada").busy_until, clock.boot() + k_busy_memory);
}

TEST_F(OnHosts, WhatIsDamagedHereAndWasBroughtBackIsTold) {
  runs();
  says(wire::AttemptPhase::running, saved(1));
  lost();
  bulk.fails["push 1"] = {make_error(Code::checkpoint_damaged, "bad"), std::nullopt};
  bulk.healed = std::string("1 chunk, from nas");
  place("job", "bob", 2, false);
  run.settle();
  EXPECT_THAT(told("checkpoint_healed"), ElementsAre("the checkpoint was damaged here; restored 1 chunk, from nas"));
}

TEST_F(OnHosts, AHostThatWasRemovedTakesItsAttemptsAlong) {
  submit("job");
  place("job", "nobody", 2, false);
  run.settle();
  EXPECT_NE(job("job").in<job::Waiting>(), nullptr);
  EXPECT_THAT(job("job").state().pending_cleanups, IsEmpty());
}

// --- What hosts say --------------------------------------------------------------------------------------------------

TEST_F(OnHosts, OutputIsFetchedPieceByPiece) {
  runs();
  line("ada").sent.clear();
  says(wire::AttemptPhase::running, [](wire::AttemptStatus& status) { status.log_bytes = 5; });
  ASSERT_EQ(line("ada").asked(), "log");
  const auto log = wire::parse_log(line("ada").sent.back().payload);
  EXPECT_EQ(log->offset, 0u);
  EXPECT_EQ(log->epoch.value, 1u);
  listener().logged(host("ada"), *log, 0, "hello");
  EXPECT_EQ(*folders.log_tail({"job"}, {1}, 0, 5), "hello");
  wire::LogRequest stale = *log;
  stale.epoch = {9};
  listener().logged(host("ada"), stale, 5, " world");
  listener().logged(host("bob"), *log, 5, " world");
  EXPECT_EQ(*folders.log_next_offset({"job"}, {1}, 0), 5u) << "nobody else writes there";
  line("ada").sent.clear();
  says(wire::AttemptPhase::running, [](wire::AttemptStatus& status) { status.log_bytes = 5; });
  EXPECT_THAT(line("ada").all_asked(), Not(Contains("log"))) << "all of it is here";
}

TEST_F(OnHosts, WhyNoCheckpointCanBeTakenIsToldOnce) {
  runs();
  const auto because = [](const std::string& why) {
    return [why](wire::AttemptStatus& status) { status.no_checkpoint = why; };
  };
  says(wire::AttemptPhase::running, because(""));
  says(wire::AttemptPhase::running, because("the disk\x1b is full"));
  says(wire::AttemptPhase::running, because("the disk\x1b is full"));
  EXPECT_THAT(told("no_checkpoint"), ElementsAre("the disk^[ is full"));
  EXPECT_THAT(told("checkpoints_again"), IsEmpty());
  says(wire::AttemptPhase::running, because(""));
  EXPECT_THAT(told("checkpoints_again"), ElementsAre("gridctl can take checkpoints again"));
  says(wire::AttemptPhase::running, because(std::string(3000, 'x')));
  EXPECT_EQ(told("no_checkpoint").back().size(), 2000u);
}

TEST_F(OnHosts, StatusesOfOthersAreNotBelieved) {
  launched();
  wire::AttemptStatus status;
  status.job = {"job"};
  status.epoch = {1};
  status.phase = wire::AttemptPhase::running;
  wire::PollReply reply;
  reply.attempts = {status};
  listener().polled(host("bob"), reply);
  EXPECT_NE(job("job").in<job::Launching>(), nullptr) << "it is not there";
}

// The host is given up, and gets the job again.
TEST_F(OnHosts, WordsOfAnEarlierAttemptOnTheSameHostAreNotThisOnes) {
  runs([](job::Spec& spec) { spec.max_duration = 1h; });
  const Epoch before = job("job").state().epoch;
  lost();
  place("job", "ada", 2);
  run.settle();
  const job::Attempt& attempt = *job("job").state().attempt();
  ASSERT_GT(attempt.epoch, before);
  listener().logged(host("ada"), {{"job"}, before, 0, 100}, 0, "words of the first\n");
  EXPECT_EQ(*folders.log_next_offset({"job"}, attempt.number, 0), 0u);
  listener().logged(host("ada"), {{"job"}, attempt.epoch, 0, 100}, 0, "mine\n");
  EXPECT_EQ(*folders.log_next_offset({"job"}, attempt.number, 0), 5u);
}

// A daemon that has just begun tells no limit to who shares a budget before it knows what each of them holds.
TEST_F(OnHosts, WhatAnEarlierAttemptIsAllowedIsNotThisOnes) {
  submit("job", [](job::Spec& spec) {
    spec.budget_total = 10;
    spec.twins = 2;
  });
  submit("second", [](job::Spec& spec) { spec.twin_of = {"job"}; });
  place("second", "bob", 3);
  place("job", "ada", 2);
  book.apply({"job"}, job::HostLost{job("job").state().epoch, 60s});
  place("job", "ada", 2);
  JobBook again(world());
  Attempts fresh(world(), again, fleet(), pacer);
  again.refresh();
  run.settle();
  const auto is_limited_after = [&](std::uint64_t epoch) {
    wire::PollReply reply;
    reply.attempts.emplace_back();
    reply.attempts[0].job = {"job"};
    reply.attempts[0].epoch = {epoch};
    reply.attempts[0].phase = wire::AttemptPhase::running;
    reply.attempts[0].allowed_ms = 3'600'000;
    static_cast<FleetListener&>(fresh).polled(host("ada"), reply);
    clock.pass(10s);
    fresh.tick(clock.boot());
    run.settle();
    return host("ada").use.wants.at(0).limits.has_value();
  };
  EXPECT_FALSE(is_limited_after(1));
  EXPECT_TRUE(is_limited_after(2));
}

TEST_F(OnHosts, AnAttemptIsCountedFromItsHostsFirstWordOn) {
  submit("job");
  EXPECT_TRUE(attempts->is_counted(job("job"))) << "nothing runs";
  place("job", "ada", 2);
  JobBook again(world());  // of a daemon that has just begun
  Attempts fresh(world(), again, fleet(), pacer);
  again.refresh();
  EXPECT_FALSE(fresh.is_counted(*again.find({"job"})));
  wire::PollReply reply;
  reply.attempts.emplace_back();
  reply.attempts[0].job = {"job"};
  reply.attempts[0].epoch = {1};
  reply.attempts[0].phase = wire::AttemptPhase::running;
  static_cast<FleetListener&>(fresh).polled(host("ada"), reply);
  EXPECT_TRUE(fresh.is_counted(*again.find({"job"})));
}

TEST_F(OnHosts, WhatBecomesOfItsHostIsToldInTheJobsHistory) {
  runs();
  submit("other");
  listener().login_refused(host("ada"), make_error(Code::auth_refused, "no key of ours", "ssh-add"));
  listener().login_refused(host("bob"), make_error(Code::auth_refused, "no key of ours"));
  EXPECT_THAT(told("host_login_refused"),
              ElementsAre("ada answers, but refuses our login; the job stays on it: no key of ours; ssh-add"));
  listener().liveness_changed(host("ada"));
  listener().liveness_changed(host("bob"));
  EXPECT_THAT(told("host_answering"), ElementsAre("ada answers again"));
  EXPECT_EQ(registry.events({"other"}, 0, 0)->size(), 1u);
}

TEST_F(OnHosts, WhatBecomesOfItsGpusIsToldInTheJobsHistory) {
  submit("job");
  book.apply({"job"}, job::Placed{{job::Member{0, {"ada"}, EngineKind::process, {"GPU-1"}, 1, 0, 0}}, "x"});
  std::vector<sched::Change> changes(2);
  changes[0].unit = "GPU-1", changes[0].kind = "quarantined", changes[0].text = "Xid 95";
  changes[1].unit = "GPU-2", changes[1].kind = "quarantined", changes[1].text = "Xid 95";
  listener().health_changed(host("ada"), changes);
  listener().health_changed(host("bob"), changes);
  EXPECT_THAT(told("gpu_quarantined"), ElementsAre("GPU-1: Xid 95"));
}

// --- Checkpoints -----------------------------------------------------------------------------------------------------

TEST_F(OnHosts, ACheckpointIsFetchedAndWrittenDownOnce) {
  runs();
  bulk.bytes = 4096;
  says(wire::AttemptPhase::running, saved(3));
  EXPECT_THAT(asked(), ElementsAre("pull 3"));
  const auto kept = registry.checkpoints({"job"});
  ASSERT_THAT(kept, IsOk());
  ASSERT_THAT(*kept, SizeIs(1));
  const registry::Checkpoint& one = kept->front();
  EXPECT_EQ(one.root, tree(3));
  EXPECT_EQ(one.epoch.value, 1u);
  EXPECT_EQ(one.attempt.value, 1u);
  EXPECT_EQ(one.bytes, 4096u);
  EXPECT_EQ(one.host_number, 3u);
  EXPECT_EQ(one.how, "format");
  EXPECT_EQ(one.created_at, clock.wall());
  EXPECT_EQ(one.stall, 300ms);
  EXPECT_EQ(one.upload, 500ms);
  EXPECT_EQ(one.metrics.at("step"), 7);
  EXPECT_FALSE(one.provisional);
  EXPECT_EQ(job("job").state().head.value, 1u);
  EXPECT_EQ(pacer.retuned, 1);
  EXPECT_EQ(attempts->newest_there(job("job")), 3u);
  says(wire::AttemptPhase::running, saved(3));
  EXPECT_THAT(asked(), IsEmpty());
  says(wire::AttemptPhase::running, saved(4));
  EXPECT_THAT(asked(), ElementsAre("pull 4 after 3")) << "as a difference to the newest";
  EXPECT_EQ(job("job").state().head.value, 2u);
}

TEST_F(OnHosts, ACheckpointThatNobodyIsSureOfIsWrittenDownAsSuch) {
  runs();
  says(wire::AttemptPhase::running, [](wire::AttemptStatus& status) {
    saved(3)(status);
    status.checkpoints[0].provisional = true;
    status.checkpoints[0].written_ms.reset();
  });
  EXPECT_TRUE(registry.checkpoints({"job"})->front().provisional);
  EXPECT_FALSE(registry.checkpoints({"job"})->front().stall);
}

TEST_F(OnHosts, WhatAHostSaysOfATornCheckpointIsWrittenDown) {
  runs();
  for (const bool torn : {false, true}) {
    says(wire::AttemptPhase::running, [&](wire::AttemptStatus& status) {
      saved(torn ? 4 : 3)(status);
      status.checkpoints[0].as_left = status.checkpoints[0].provisional = true;
      status.checkpoints[0].torn = torn;
    });
    const registry::Checkpoint kept = registry.checkpoints({"job"})->back();
    EXPECT_TRUE(kept.as_left);
    EXPECT_EQ(kept.torn, torn) << "a torn one is never restored by itself";
  }
}

// A host that lies could plant a state in it that the next host would begin from.
TEST_F(OnHosts, OfAJobThatAsksForNoneNoCheckpointIsTaken) {
  runs([](job::Spec& spec) { spec.checkpoint.interval = job::CheckpointPolicy::Interval::off; });
  says(wire::AttemptPhase::running, saved(7));
  EXPECT_THAT(asked(), IsEmpty());
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) {
    saved(7)(status);
    status.end = wire::EndReason::exited;
    status.exit_code = 3;
  });
  EXPECT_THAT(asked(), Not(Contains(HasSubstr("pull"))));
  EXPECT_THAT(*registry.checkpoints({"job"}), IsEmpty());
  EXPECT_EQ(job("job").state().head.value, 0u);
}

TEST_F(OnHosts, ASecretInAHostsNamesIsNotWrittenDown) {
  const std::string secret = "statesecret-0123456789";
  ASSERT_THAT(folders.keep_secrets({"job"}, {{"S", secret}}), IsOk());
  runs();
  says(wire::AttemptPhase::running, [&](wire::AttemptStatus& status) {
    saved(3)(status);
    status.checkpoints[0].how = "torch:" + secret + ".pt";
    status.checkpoints[0].metrics = {{secret, 1.5}, {"loss", 2}};
    status.no_checkpoint = std::string(1990, 'x') + secret;  // it is cut at 2,000 bytes
  });
  const registry::Checkpoint one = registry.checkpoints({"job"})->front();
  EXPECT_EQ(one.how, "torch:" + std::string(secret.size(), '*') + ".pt");
  EXPECT_THAT(one.metrics, ElementsAre(std::pair(std::string(secret.size(), '*'), 1.5), std::pair("loss", 2.0)));
  EXPECT_THAT(told("no_checkpoint"), ElementsAre(Not(HasSubstr("statesec"))));
}

TEST_F(OnHosts, OldCheckpointsGoAsTheJobWants) {
  runs([](job::Spec& spec) { spec.checkpoint.keep = job::KeepPolicy::newest(2); });
  for (std::uint64_t number = 1; number <= 4; ++number) says(wire::AttemptPhase::running, saved(number));
  std::vector<std::uint64_t> left;
  for (const auto kept = *registry.checkpoints({"job"}); const registry::Checkpoint& one : kept) left.push_back(one.seq.value);
  EXPECT_THAT(left, ElementsAre(3, 4));
}

TEST_F(OnHosts, ACheckpointThatCouldNotBeFetchedIsTriedAgainEverMoreSeldom) {
  runs();
  const Error broken = make_error(Code::host_unreachable, "the connection broke");
  bulk.fails["pull 3"] = {broken, broken, std::nullopt};
  says(wire::AttemptPhase::running, saved(3));
  EXPECT_THAT(told("checkpoint_fetch_failed"), ElementsAre(HasSubstr("the connection broke")));
  asked();
  const auto waits = [&](Duration pause) {
    clock.pass(pause - 1ms);
    run.fire();
    says(wire::AttemptPhase::running, saved(3));
    EXPECT_THAT(asked(), IsEmpty());
    clock.pass(1ms);
    run.fire();
    says(wire::AttemptPhase::running, saved(3));
    EXPECT_THAT(asked(), ElementsAre("pull 3"));
  };
  waits(k_pull_retry);
  waits(2 * k_pull_retry);
  EXPECT_EQ(job("job").state().head.value, 1u);
  EXPECT_THAT(told("checkpoint_fetch_failed"), SizeIs(2));
}

TEST_F(OnHosts, ADaemonThatBeginsKnowsWhatIsHere) {
  runs();
  says(wire::AttemptPhase::running, saved(3));
  asked();
  JobBook again(world());
  Attempts fresh(world(), again, fleet(), pacer);
  again.refresh();
  EXPECT_EQ(fresh.newest_there(*again.find({"job"})), 3u);
}

// --- Ending ----------------------------------------------------------------------------------------------------------

TEST_F(OnHosts, AStopIsRepeatedUntilTheEndIsSeen) {
  runs();
  book.apply({"job"}, job::CancelRequested{7s});
  run.settle();
  EXPECT_THAT(asked(), ElementsAre("stop"));
  EXPECT_EQ(wire::parse_stop(script.payloads["stop"])->grace, 7s);
  later(k_stop_retry - 1ms);
  EXPECT_THAT(asked(), IsEmpty());
  later(1ms);
  EXPECT_THAT(asked(), ElementsAre("stop"));
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.end = wire::EndReason::stopped; });
  EXPECT_EQ(job("job").state().visible(), job::JobState::cancelled);
}

TEST_F(OnHosts, WhatHasEndedIsCollectedAndCleanedUp) {
  runs();
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) {
    status.end = wire::EndReason::exited;
    status.exit_code = 0;
    saved(5)(status);
  });
  EXPECT_EQ(job("job").state().visible(), job::JobState::succeeded);
  EXPECT_EQ(registry.checkpoints({"job"})->front().host_number, 5u);
  later(k_settle_retry);
  EXPECT_THAT(asked(), Contains("clean"));
  EXPECT_FALSE(job("job").state().needs_controller());
}

TEST_F(OnHosts, WhatItsNextAttemptMayStartFromStaysOnAHostThatIsCleanedUp) {
  script.answers("keep");
  runs();
  says(wire::AttemptPhase::running, saved(1));
  lost();
  ASSERT_TRUE(script.payloads.contains("keep"));
  EXPECT_EQ(wire::parse_keep(script.payloads["keep"])->epoch.value, 1u);
}

TEST_F(OnHosts, WhatAFailedProgramSaidLastIsKept) {
  runs();
  ASSERT_THAT(folders.log_append({"job"}, {1}, 0, 0, "step 1\nstep 2\nValueError: no\n"), IsOk());
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) {
    status.end = wire::EndReason::exited;
    status.exit_code = 1;
  });
  EXPECT_THAT(told("last_output"), ElementsAre("step 1\nstep 2\nValueError: no"));
  ASSERT_THAT(job("job").state().failures, SizeIs(1));
  EXPECT_THAT(job("job").state().failures[0].last, HasSubstr("ValueError: no"));
}

TEST_F(OnHosts, ASuccessIsExplainedByNoOutput) {
  runs();
  ASSERT_THAT(folders.log_append({"job"}, {1}, 0, 0, "bye\n"), IsOk());
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.end = wire::EndReason::exited, status.exit_code = 0; });
  EXPECT_THAT(told("last_output"), IsEmpty());
}

TEST_F(OnHosts, AHostsFaultIsExplainedByNoOutput) {
  runs();
  ASSERT_THAT(folders.log_append({"job"}, {1}, 0, 0, "bye\n"), IsOk());
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.end = wire::EndReason::vanished; });
  EXPECT_NE(job("job").in<job::Waiting>(), nullptr);
  EXPECT_THAT(told("last_output"), IsEmpty());
}

TEST_F(OnHosts, WhatCannotBeCollectedNowIsTriedAgain) {
  runs();
  bulk.no_way = make_error(Code::host_unreachable, "no route");
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.end = wire::EndReason::exited, status.exit_code = 0; });
  EXPECT_NE(job("job").in<job::Collecting>(), nullptr);
  bulk.no_way.reset();
  later(k_launch_retry);
  EXPECT_EQ(job("job").state().visible(), job::JobState::succeeded);
}

TEST_F(OnHosts, RoomThatIsGivenBackIsToldToWhoWaits) {
  runs();
  const std::uint64_t before = fleet().capacity();
  says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.end = wire::EndReason::exited, status.exit_code = 0; });
  EXPECT_EQ(fleet().capacity(), before + 1);
}

TEST_F(OnHosts, WhatHostsAreToDoIsToldWithTheirLimits) {
  runs([](job::Spec& spec) {
    spec.recovery.lease = 3h;
    spec.recovery.lost_after = 24s;
    spec.max_duration = 1h;
  });
  says(wire::AttemptPhase::running, saved(3));
  const HostUse& use = host("ada").use;
  ASSERT_THAT(use.wants, SizeIs(1));
  EXPECT_EQ(use.wants[0].attempt.job.value, "job");
  EXPECT_EQ(use.wants[0].attempt.epoch.value, 1u);
  EXPECT_EQ(use.wants[0].attempt.checkpoints_kept_from, 3u);
  EXPECT_EQ(use.wants[0].lease, 3h);
  ASSERT_TRUE(use.wants[0].limits);
  EXPECT_EQ(use.wants[0].limits->run_limit, "max_duration");
  EXPECT_EQ(use.patience, 24s);
  EXPECT_THAT(host("bob").use.wants, IsEmpty());
  EXPECT_EQ(host("ada").monitor->heartbeat(), 2s);
}

TEST_F(OnHosts, OutputsAreFetchedWhileItRunsWhereTheJobWantsThat) {
  runs([](job::Spec& spec) { spec.outputs = {{"out/", job::OutputWhen::always, 60s}}; });
  wire::ResultsReply reply;
  reply.files = 1;
  reply.root = tree(8);
  script.answers("results", wire::encode(reply));
  says(wire::AttemptPhase::running);
  EXPECT_THAT(asked(), IsEmpty()) << "the interval begins now";
  clock.pass(60s - 1ms);
  says(wire::AttemptPhase::running);
  EXPECT_THAT(asked(), IsEmpty());
  clock.pass(1ms);
  says(wire::AttemptPhase::running);
  EXPECT_THAT(asked(), ElementsAre("results", "bring 8"));
  ASSERT_TRUE(registry.results({"job"})->has_value());
  EXPECT_EQ((*registry.results({"job"}))->root, tree(8));
  EXPECT_THAT(told("outputs"), IsEmpty()) << "told at the end only";
  says(wire::AttemptPhase::running);
  EXPECT_THAT(asked(), IsEmpty()) << "the next is due a minute later";
  clock.pass(60s);
  says(wire::AttemptPhase::running);
  EXPECT_THAT(asked(), ElementsAre("results", "bring 8 over 8"));
}

// Collects the first attempt on ada; while its outputs (root 8) are under way it is given up, and the job goes to bob.
class LateOutputs : public OnHosts {
 protected:
  void collects(bool begins, std::optional<int> newer) {
    runs([](job::Spec& spec) { spec.outputs = {{"out/", job::OutputWhen::always, 0s}}; });
    wire::ResultsReply reply;
    reply.files = 1;
    reply.root = tree(8);
    script.answers("results", wire::encode(reply));
    bulk.fails_reaching = [this, begins, newer, over = false](const HostReach& host) mutable -> std::optional<Error> {
      if (host.provider.name.value != "ada" || std::exchange(over, true)) return std::nullopt;
      book.apply({"job"}, job::HostLost{job("job").state().epoch, 60s});
      EXPECT_NE(job("job").in<job::Waiting>(), nullptr);
      place("job", "bob", 2, begins);
      if (newer) {
        EXPECT_THAT(registry.save_results({{"job"}, tree(*newer), 1, 10, clock.wall(), {}}), IsOk());
      }
      return std::nullopt;
    };
    says(wire::AttemptPhase::ended, [](wire::AttemptStatus& status) { status.end = wire::EndReason::vanished; });
    EXPECT_EQ(job("job").state().epoch.value, 2u);
  }
  std::optional<Digest> kept() {
    const auto results = registry.results({"job"});
    return results && *results ? (*results)->root : std::nullopt;
  }
};

TEST_F(LateOutputs, OfAGivenUpAttemptReplaceNoneOfItsSuccessors) {
  collects(true, 9);
  EXPECT_EQ(kept(), tree(9));
}

TEST_F(LateOutputs, OfAGivenUpAttemptAreKeptWhereItsSuccessorHasNone) {
  collects(true, std::nullopt);
  EXPECT_EQ(kept(), tree(8));
}

TEST_F(LateOutputs, OfAGivenUpAttemptReplaceThoseOfBeforeAsLongAsNoSuccessorHasBegun) {
  collects(false, 7);
  EXPECT_EQ(kept(), tree(8));
}

}  // namespace
}  // namespace gridctl::control::attempts_test
