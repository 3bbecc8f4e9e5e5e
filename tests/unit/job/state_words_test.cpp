// SPDX-License-Identifier: Apache-2.0
// The lines that people read of a job's life, and what is written into the table of its attempts.
#include <gmock/gmock.h>

#include "driver.hpp"
#include "job/state.hpp"

namespace gridctl::job::state_words_test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string text_of(const Driver& job, const std::string& kind) {
  std::string text;
  for (const Record& record : job.records)
    if (record.kind == kind) text = record.text;
  return text;
}

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Lines since the last call: "kind: text".
struct Told : Driver {
  using Driver::Driver;
  std::vector<std::string> lines() {
    std::vector<std::string> out;
    for (const Record& record : std::exchange(records, {})) out.push_back(record.kind + ": " + record.text);
    return out;
  }
  // Rows since the last call: "state reason", with a mark for an end and an exit code.
  std::vector<std::string> table() {
    std::vector<std::string> out;
    for (const AttemptRow& row : std::exchange(rows, {}))
      out.push_back(row.state + (row.reason.empty() ? "" : " " + row.reason) + (row.ended_at ? " at " + std::to_string(row.ended_at->ms) : "") +
                    (row.exit_code ? " code " + std::to_string(*row.exit_code) : ""));
    return out;
  }
  std::string why() const { return state.reason + ": " + state.reason_text; }
};

Member on(int rank, const std::string& host, double usd = 0.5) { return {rank, {host}, EngineKind::process, {}, 1, 0, usd}; }

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

TEST(History, OfAJobThatSucceeds) {
  Spec spec;
  spec.name = "train";
  Told job(spec);
  EXPECT_THAT(job.lines(), ElementsAre("submitted: submitted as train"));
  EXPECT_EQ(job.why(), "submitted: waiting for a host");
  job.happen(NotPlaced{true, "0 of 1 providers fit: 1 busy"});
  EXPECT_THAT(job.lines(), ElementsAre("waiting_for_provider: 0 of 1 providers fit: 1 busy"));
  EXPECT_THAT(job.effects, SizeIs(1)) << "the scheduler is asked again";
  job.happen(NotPlaced{true, "0 of 1 providers fit: 1 busy"});
  EXPECT_THAT(job.lines(), IsEmpty()) << "that is known";
  EXPECT_THAT(job.effects, SizeIs(1));
  job.happen(NotPlaced{false, "0 of 1 providers fit: 1 gpu"});
  EXPECT_THAT(job.lines(), ElementsAre("no_provider_fits: 0 of 1 providers fit: 1 gpu"));
  job.happen(Placed{{on(0, "ada")}, "cheapest", Expected{60, 2}});
  EXPECT_THAT(job.lines(), ElementsAre("placed: attempt 1 goes to ada, from the beginning: cheapest"));
  EXPECT_THAT(job.table(), ElementsAre("starting"));
  EXPECT_EQ(job.why(), "starting: starting on ada");
  EXPECT_EQ(job.state.expected, (Expected{60, 2}));
  job.advance(1200);
  job.happen(LaunchAccepted{{1}});
  EXPECT_THAT(job.lines(), ElementsAre("accepted: ada accepted the attempt (sending its files: 1.2s)"));
  job.happen(LaunchAccepted{{1}});
  EXPECT_THAT(job.lines(), IsEmpty());
  job.advance(300);
  job.happen(Preparing{{1}, "image"});
  EXPECT_THAT(job.lines(), ElementsAre("preparing: ada: preparing the image"));
  EXPECT_EQ(job.why(), "starting: starting on ada: preparing the image");
  job.advance(2500);
  job.happen(Preparing{{1}, "setup"});
  EXPECT_THAT(job.lines(), ElementsAre("preparing: ada: running setup (preparing the image: 2.5s)"));
  job.advance(500);
  job.happen(PayloadStarted{{1}, 0, 200ms});
  EXPECT_EQ(doing_in_words("start"), "starting the program") << "of a job without a setup";
  EXPECT_THAT(job.lines(), ElementsAre("attempt_started: attempt 1 runs on ada, 4.5s after placement (running setup: 500ms)"));
  EXPECT_THAT(job.table(), ElementsAre("running"));
  EXPECT_EQ(job.state.attempt()->started_at->ms, job.now_ms - 200);
  EXPECT_EQ(job.why(), "running: running on ada");
  job.happen(CheckpointCommitted{{1}, {1}, "12 MB"});
  job.happen(CheckpointCommitted{{1}, {2}, ""});
  job.happen(CheckpointCommitted{{1}, {2}, "again"});
  EXPECT_THAT(job.lines(), ElementsAre("checkpoint: checkpoint 1 is safe: 12 MB", "checkpoint: checkpoint 2 is safe"));
  job.happen(PriceChanged{{1}, 0.75});
  job.happen(PriceChanged{{1}, 0.75});
  EXPECT_THAT(job.lines(), ElementsAre("price_changed: ada now costs 0.75 USD an hour, before 0.50"));
  EXPECT_EQ(job.state.price_per_hour(), 0.75);
  job.happen(DeadlinePassed{"it is late"});
  job.happen(DeadlinePassed{"it is late"});
  EXPECT_THAT(job.lines(), ElementsAre("deadline_passed: it is late"));
  job.advance(10'000);
  job.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}, 4s});
  EXPECT_THAT(job.lines(), ElementsAre("attempt_ended: attempt 1 on ada ended: exit code 0"));
  EXPECT_THAT(job.table(), ElementsAre("running at " + std::to_string(job.now_ms - 4000) + " code 0")) << "it costs nothing any more";
  EXPECT_EQ(job.why(), "collecting: fetching the last checkpoint and output from ada");
  job.happen(Collected{{1}, "the end of the output is missing"});
  EXPECT_THAT(job.lines(), ElementsAre("collect_incomplete: the end of the output is missing", "succeeded: succeeded on ada"));
  EXPECT_THAT(job.table(), ElementsAre("succeeded exited at " + std::to_string(job.now_ms - 4000) + " code 0"));
  EXPECT_EQ(job.why(), "succeeded: succeeded on ada");
  EXPECT_THAT(job.due(), ElementsAre("settle/1/ada"));
  job.happen(CleanedUp{{"ada"}, {1}});
  EXPECT_THAT(job.lines(), IsEmpty());
  EXPECT_THAT(job.due(), IsEmpty());
  EXPECT_FALSE(job.state.needs_controller());
}

TEST(History, OfHowAnAttemptEnded) {
  const std::vector<std::pair<End, std::string>> ends{
      {{EndKind::exited, 3, 0, ""}, "exit code 3"},
      {{EndKind::signalled, -1, 11, ""}, "killed by signal 11"},
      {{EndKind::oom, -1, 0, ""}, "out of memory"},
      {{EndKind::stopped, -1, 0, ""}, "stopped by request"},
      {{EndKind::lease_expired, -1, 0, ""}, "its lease expired"},
      {{EndKind::host_rebooted, -1, 0, ""}, "the host rebooted"},
      {{EndKind::vanished, -1, 0, ""}, "its processes vanished"},
      {{EndKind::start_failed, -1, 0, "no engine"}, "the host could not start it: no engine"},
      {{EndKind::disk_full, -1, 0, ""}, "the host's disk is full"},
      {{EndKind::image_failed, -1, 0, "no such tag"}, "the image is not available: no such tag"},
      {{EndKind::absent, -1, 0, ""}, "the host does not have it"},
      {{EndKind::limit, -1, 0, "budget"}, "the host ended it at a limit: budget"}};
  for (const auto& [end, words] : ends) {
    Told job;
    job.run_on("ada");
    job.lines();
    job.end(end);
    EXPECT_THAT(job.lines(), ::testing::Contains("attempt_ended: attempt 1 on ada ended: " + words));
  }
}

TEST(History, OfAJobWhoseHostIsLostAndComesBack) {
  Told job;
  job.run_on("ada");
  job.happen(CheckpointCommitted{{1}, {1}, ""});
  job.lines(), job.table();
  job.advance(90'000);
  job.happen(HostLost{{1}, 61s});
  EXPECT_THAT(job.lines(), ElementsAre("host_lost: ada was given up after 1m1s of silence",
                                       "recovering: starting again: the host was lost: silent for 1m1s"));
  EXPECT_THAT(job.table(), ElementsAre("lost host_lost at " + std::to_string(job.now_ms)));
  EXPECT_EQ(job.why(), "host_lost: the host was lost: silent for 1m1s (ada)");
  EXPECT_EQ(job.state.lost, 90s);
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  job.place("bob");
  EXPECT_THAT(job.lines(), ElementsAre("placed: attempt 2 goes to bob, from checkpoint 1: cheapest"));
  EXPECT_EQ(job.state.recoveries, 1);
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  job.happen(PayloadStarted{{2}});
  EXPECT_EQ(job.state.visible(), JobState::running);
  job.lines();
  job.happen(CleanedUp{{"bob"}, {1}});
  job.happen(CleanedUp{{"ada"}, {2}});
  EXPECT_THAT(job.lines(), IsEmpty());
  job.happen(CleanedUp{{"ada"}, {1}});
  EXPECT_THAT(job.lines(), ElementsAre("settled: ada is back: its stale attempt is stopped and cleaned up"));
}

TEST(History, OfAStartThatFails) {
  Told job;
  job.place("ada");
  job.lines(), job.table();
  job.happen(LaunchFailed{{1}, "a GPU was taken", false, {}});
  EXPECT_THAT(job.lines(), ElementsAre("launch_failed: a GPU was taken"));
  EXPECT_THAT(job.table(), ElementsAre("failed not_started at " + std::to_string(job.now_ms)));
  EXPECT_EQ(job.why(), "not_started: a GPU was taken");
  EXPECT_THAT(job.state.avoided, IsEmpty());
  job.place("ada");
  job.lines(), job.table();
  job.happen(LaunchFailed{{2}, "no engine", true, {}});
  EXPECT_THAT(job.lines(), ElementsAre("recovering: starting again: the host could not start it: no engine"));
  EXPECT_THAT(job.table(), ElementsAre("failed start_failed at " + std::to_string(job.now_ms)));
  ASSERT_THAT(job.state.avoided, SizeIs(1));
  EXPECT_EQ(job.state.avoided[0].reason, "the host could not start it: no engine");
  job.place("ada");
  job.lines();
  job.happen(LaunchFailed{{3}, "stale", true, {9}});
  EXPECT_THAT(job.lines(), ElementsAre("epoch_adopted: ada knows epoch 9: this state directory is older than the host",
                                       "recovering: starting again: the host could not start it: stale"));
  EXPECT_EQ(job.state.epoch.value, 9u);
  job.place("ada");
  EXPECT_EQ(job.state.epoch.value, 10u);
}

TEST(History, OfAProgramThatFails) {
  Spec spec;
  spec.recovery.max_failures = 2;
  Told job(spec);
  job.run_on("ada");
  job.lines(), job.table();
  job.exit_with(3);
  EXPECT_THAT(job.lines(), ElementsAre("attempt_ended: attempt 1 on ada ended: exit code 3",
                                       "program_failed: exit code 3 on ada (failure 1 of 2)"));
  EXPECT_EQ(job.table().back(), "failed exited at " + std::to_string(job.now_ms) + " code 3");
  EXPECT_EQ(job.state.avoided.at(0).reason, "the job failed there: exit code 3");
  job.run_on("ada");
  job.lines();
  job.exit_with(3);
  EXPECT_THAT(job.lines().back(), "failed: exit code 3 on ada (failure 2 of 2, the limit of recovery.max_failures)");
  EXPECT_EQ(std::get<Done>(job.state.phase).exit_code, 3);
  EXPECT_EQ(job.state.reason, "program_failed");
}

TEST(History, OfACancellation) {
  Told job;
  job.run_on("ada");
  job.lines(), job.table();
  job.happen(CancelRequested{30s});
  EXPECT_THAT(job.lines(), ElementsAre("cancel_requested: cancellation requested, grace 30s"));
  EXPECT_EQ(job.why(), "cancelling: stopping on ada");
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_THAT(job.lines(), ElementsAre("attempt_ended: attempt 1 on ada ended: stopped by request",
                                       "cancelled: cancelled; it ended with: stopped by request"));
  EXPECT_THAT(job.table().back(), HasSubstr("stopped stopped at "));
  Told waits;
  waits.lines();
  waits.happen(CancelRequested{});
  EXPECT_THAT(waits.lines().back(), "cancelled: cancelled; the job had not started");
  EXPECT_EQ(waits.why(), "cancelled: cancelled; the job had not started");
}

TEST(History, OfALimit) {
  Told job;
  job.run_on("ada");
  job.lines();
  job.happen(LimitReached{"", "nothing"});
  EXPECT_THAT(job.lines(), IsEmpty());
  job.happen(LimitReached{"budget", "its budget is used up"});
  EXPECT_THAT(job.lines(), ElementsAre("limit_reached: its budget is used up"));
  EXPECT_EQ(job.why(), "budget: stopping on ada");
  job.happen(LimitReached{"deadline", "it is over"});
  EXPECT_THAT(job.lines(), IsEmpty()) << "it is being stopped";
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_EQ(job.lines().back(), "cancelled: its budget is used up; it ended with: stopped by request");
  EXPECT_EQ(job.state.reason, "budget");
}

TEST(History, OfAMove) {
  Told job;
  job.run_on("ada");
  job.lines();
  job.happen(MoveBlocked{{1}, "0 of 1 fit"});
  job.happen(MoveBlocked{{1}, "0 of 1 fit"});
  EXPECT_THAT(job.lines(), ElementsAre("move_blocked: ada is being emptied, but no other host can run the job now; the job stays: 0 of 1 fit"));
  EXPECT_EQ(job.state.reason, "move_blocked");
  job.happen(MoveRequested{{1}, "drained", 0, 5min});
  EXPECT_THAT(job.lines(), ElementsAre("move_requested: ada is drained: the job moves when its next checkpoint is safe, in at most 5m"));
  job.happen(MoveRequested{{1}, "drained", 0, 5min});
  EXPECT_THAT(job.lines(), IsEmpty());
  job.happen(CheckpointCommitted{{1}, {4}, "", 1});
  job.lines();
  job.happen(MoveDue{{1}});
  EXPECT_THAT(job.lines(), ElementsAre("moving: ada is drained: stopping there, checkpoint 4 is safe"));
  job.table();
  job.end({EndKind::stopped, -1, 0, ""});
  EXPECT_EQ(job.lines().back(), "moved_away: ada is drained: continuing elsewhere");
  EXPECT_THAT(job.table().back(), HasSubstr("stopped drained at "));
  EXPECT_EQ(std::get<Waiting>(job.state.phase).backoff, 0s);
  EXPECT_TRUE(job.state.recovering);
  EXPECT_THAT(job.state.avoided, IsEmpty());
}

TEST(History, OfAGang) {
  Told job;
  job.happen(Placed{{on(0, "ada", 1), on(1, "bob", 2)}, "both"});
  job.happen(MemberPrepared{{1}, 1});
  job.happen(MemberPrepared{{1}, 1});
  job.happen(MemberPrepared{{1}, 0});
  job.happen(MembersConnected{{1}, "10 Gbit/s", {"10.0.0.1", "10.0.0.2"}, 21000, "t"});
  job.happen(MembersConnected{{1}, "again", {}, 1, "u"});
  job.happen(LaunchAccepted{{1}, 0});
  job.happen(LaunchAccepted{{1}, 1});
  job.happen(PayloadStarted{{1}, 1});
  EXPECT_THAT(job.lines(), ElementsAre("submitted: submitted as ", "placed: attempt 1 goes to ada and bob, from the beginning: both",
                                       "member_prepared: rank 1 is ready on bob", "member_prepared: rank 0 is ready on ada",
                                       "gang_connected: 10 Gbit/s", "accepted: ada accepted the attempt (sending its files: 0ms)",
                                       "accepted: bob accepted the attempt", "member_started: rank 1 runs on bob"));
  EXPECT_EQ(job.state.attempt()->members[1].address, "10.0.0.2");
  EXPECT_EQ(std::get<Launching>(job.state.phase).port, 21000);
  job.happen(PayloadStarted{{1}, 0});
  EXPECT_EQ(job.state.price_per_hour(), 3);
  job.lines();
  job.advance(1000);
  job.happen(AttemptEnded{{1}, {EndKind::vanished, -1, 0, "", 1}});
  EXPECT_THAT(job.lines(), ElementsAre("attempt_ended: attempt 1, rank 1, on bob ended: its processes vanished",
                                       "gang_broken: rank 1 on bob: its processes vanished; stopping the other members"));
  EXPECT_THAT(job.due(), ElementsAre("stop/1/0"));
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, "", 0}});
  EXPECT_THAT(job.due(), ElementsAre("collect/1/0", "collect/1/1"));
  job.lines();
  job.happen(Collected{{1}, "", 0});
  EXPECT_THAT(job.lines(), IsEmpty());
  job.happen(Collected{{1}, "", 1});
  EXPECT_THAT(job.lines(), ElementsAre("recovering: starting again: its processes vanished"));
  EXPECT_EQ(job.why(), "vanished: its processes vanished (bob)");
  EXPECT_THAT(job.due(), ElementsAre("place", "settle/1/ada", "settle/1/bob"));
  EXPECT_EQ(job.state.lost, 1s);
}

TEST(History, OfWhatAHostMayHaveDoneLongBefore) {
  Told job;
  job.run_on("ada");
  const std::int64_t began = job.now_ms;
  job.table();
  job.advance(5000);
  job.happen(AttemptEnded{{1}, {EndKind::exited, 0, 0, ""}, 1h});
  EXPECT_THAT(job.table(), ElementsAre("running at " + std::to_string(began) + " code 0")) << "not before it began";
  Told early;
  early.place("ada");
  const std::int64_t placed = early.now_ms;
  early.advance(1000);
  early.happen(PayloadStarted{{1}, 0, 1h});
  EXPECT_EQ(early.state.attempt()->started_at->ms, placed) << "nor before it was placed";
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
}  // namespace gridctl::job::state_words_test
