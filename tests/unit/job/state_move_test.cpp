// SPDX-License-Identifier: Apache-2.0
// Moves off a drained host, through every turn they can take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver.hpp"
#include "job/state.hpp"

namespace gridctl::job::state_move_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(JobMove, RunsOnUntilACheckpointIsSafeThenGoesOnElsewhereFromIt) {
  Moving job;
  job.run_on("a");
  job.save(1);
  job.request(1);
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_THAT(job.effects_due(), IsEmpty()) << "nothing is stopped yet";
  EXPECT_FALSE(job.move()->saved);
  EXPECT_THAT(job.state.reason_text, HasSubstr("in at most 10m"));
  job.save(2);
  EXPECT_TRUE(job.move()->saved);
  job.due();
  EXPECT_THAT(job.effects_due(), ElementsAre("stop/1/0"));
  EXPECT_EQ(job.state.moving(), "drained");
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, ""}});
  EXPECT_THAT(job.effects_due(), ElementsAre("collect/1/0"));
  EXPECT_EQ(job.state.moving(), "drained");
  job.save(3);  // its last one, collected after the stop
  job.happen(Collected{{1}, ""});
  EXPECT_EQ(job.state.visible(), JobState::recovering);
  EXPECT_THAT(job.effects_due(), ElementsAre("place", "settle/1/a"));
  EXPECT_EQ(job.rows.back().state, "stopped");
  EXPECT_EQ(job.rows.back().reason, "drained");
  job.place("b");
  EXPECT_EQ(job.state.epoch.value, 2u);
  EXPECT_EQ(job.state.attempt()->resumed_from.value, 3u);
  job.happen(PayloadStarted{{2}});
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_EQ(job.state.reason, "running");
}

TEST(JobMove, DoesNotGoBackToTheHostThatKeptItPaused) {
  Moving job;
  job.run_on("a");
  job.happen(MoveRequested{job.state.epoch, std::string(k_paused)});
  job.due();
  ASSERT_EQ(job.state.avoided.size(), 1u);
  EXPECT_EQ(job.state.avoided[0].host.value, "a");
}

TEST(JobMove, IsNeitherAFailureNorALossNorPunishedByABackoff) {
  Spec spec;
  spec.recovery.max_failures = 1;
  Moving job(spec);
  for (int i = 0; i < 20; ++i) {
    job.run_on("h" + std::to_string(i));
    job.request();
    job.due();
    job.stopped();
    ASSERT_EQ(job.state.visible(), JobState::recovering);
    ASSERT_EQ(std::get<Waiting>(job.state.phase).backoff, Duration::zero());
    job.happen(CleanedUp{{"h" + std::to_string(i)}, job.state.epoch});
  }
  EXPECT_TRUE(job.state.failures.empty());
  EXPECT_TRUE(job.state.avoided.empty());
  EXPECT_EQ(job.state.restarts_in_row, 0);
  EXPECT_FALSE(job.recorded("host_lost"));
  for (const AttemptRow& row : job.rows) EXPECT_NE(row.state, "lost");
}

TEST(JobMove, TakesNoCheckpointFromBeforeTheRequestForTheNextOne) {
  Moving job;
  job.run_on("a");
  job.request(5);
  job.save(5);  // was taken before, and fetched only now
  EXPECT_FALSE(job.move()->saved);
  job.save(6);
  EXPECT_TRUE(job.move()->saved);
}

TEST(JobMove, SaysWhenItStopsWithoutANewCheckpoint) {
  Moving job;
  job.run_on("a");
  job.request();
  job.advance(600'000);
  job.due();
  EXPECT_THAT(job.records.back().text, HasSubstr("no further checkpoint was saved within 10m"));
}

TEST(JobMove, StaysWhereItIsAsLongAsNoOtherHostCanTakeIt) {
  Moving job;
  job.run_on("a");
  job.happen(MoveBlocked{{1}, "0 of 2 providers fit: 1 busy, 1 drained"});
  EXPECT_EQ(job.state.visible(), JobState::running);
  EXPECT_EQ(job.state.reason, "move_blocked");
  EXPECT_THAT(job.state.reason_text, HasSubstr("1 busy, 1 drained"));
  EXPECT_THAT(job.effects_due(), IsEmpty());
  const std::size_t records = job.records.size();
  job.happen(MoveBlocked{{1}, "0 of 2 providers fit: 1 busy, 1 drained"});
  EXPECT_EQ(job.records.size(), records) << "the same answer is recorded once";
  job.due();
  EXPECT_TRUE(std::holds_alternative<Running>(job.state.phase)) << "nobody asked for the move";
}

TEST(JobMove, IsPutOffWhenTheOtherHostIsGoneBeforeTheStop) {
  Moving job;
  job.run_on("a");
  job.request();
  job.save(1);
  job.happen(MoveBlocked{{1}, "0 of 2 providers fit: 1 drained, 1 unreachable"});
  job.due();
  EXPECT_TRUE(std::holds_alternative<Running>(job.state.phase));
  job.request(1);
  EXPECT_FALSE(job.move()->saved) << "what was saved long ago is not the next checkpoint";
}

TEST(JobMove, IsWithdrawnOnlyBeforeItBegan) {
  Moving job;
  job.run_on("a");
  job.request();
  job.happen(MoveWithdrawn{{1}});
  EXPECT_FALSE(job.move());
  EXPECT_EQ(job.state.reason, "running");
  EXPECT_TRUE(job.recorded("move_withdrawn"));
  job.happen(MoveBlocked{{1}, "0 of 1 provider fits: 1 drained"});
  job.happen(MoveWithdrawn{{1}});
  EXPECT_EQ(job.state.reason, "running");
  job.request();
  job.due();
  const State stopping = job.state;
  job.happen(MoveWithdrawn{{1}});
  EXPECT_EQ(job.state, stopping) << "a stop cannot be taken back";
}

TEST(JobMove, BreaksOffAStartAndStartsElsewhere) {
  Moving job;
  job.place("a");
  job.request();
  EXPECT_THAT(job.effects_due(), ElementsAre("stop/1/0"));
  job.end({EndKind::absent, -1, 0, ""});  // START had not arrived; the fence keeps it out
  EXPECT_EQ(job.rows.back().state, "stopped");
  EXPECT_EQ(job.rows.back().reason, "drained");
  EXPECT_EQ(job.state.start_failures_in_row, 0);
  EXPECT_THAT(job.effects_due(), ElementsAre("place", "settle/1/a"));
}

TEST(JobMove, GivesWayToACancellationAtEveryPoint) {
  Moving waiting;
  waiting.run_on("a");
  waiting.request();
  waiting.happen(CancelRequested{std::chrono::seconds{5}});
  EXPECT_EQ(waiting.state.moving(), "");
  waiting.stopped();
  EXPECT_EQ(waiting.state.visible(), JobState::cancelled);

  Moving stopping;
  stopping.run_on("a");
  stopping.request();
  stopping.due();
  stopping.happen(CancelRequested{std::chrono::seconds{5}});
  EXPECT_EQ(std::get<Stopping>(stopping.state.phase).grace, Duration{std::chrono::seconds{5}});
  stopping.stopped();
  EXPECT_EQ(stopping.state.visible(), JobState::cancelled);
  EXPECT_EQ(stopping.rows.back().reason, "stopped");

  Moving collecting;
  collecting.run_on("a");
  collecting.request();
  collecting.due();
  collecting.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, ""}});
  collecting.happen(CancelRequested{{}});
  collecting.happen(Collected{{1}, ""});
  EXPECT_EQ(collecting.state.visible(), JobState::cancelled);

  Moving moved;
  moved.run_on("a");
  moved.request();
  moved.due();
  moved.stopped();
  moved.happen(CancelRequested{{}});
  EXPECT_EQ(moved.state.visible(), JobState::cancelled);
}

TEST(JobMove, SurvivesTheDeathOfItsHostAtEveryPoint) {
  Moving waiting;
  waiting.run_on("a");
  waiting.request();
  waiting.lose();
  EXPECT_EQ(waiting.rows.back().state, "lost");
  EXPECT_THAT(waiting.effects_due(), ElementsAre("place", "settle/1/a"));

  Moving stopping;
  stopping.run_on("a");
  stopping.request();
  stopping.due();
  stopping.lose();
  EXPECT_EQ(stopping.rows.back().state, "lost");
  EXPECT_TRUE(stopping.state.pending_cleanups.at(0).stale);
  EXPECT_EQ(stopping.state.visible(), JobState::recovering);

  Moving collecting;
  collecting.run_on("a");
  collecting.request();
  collecting.due();
  collecting.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, ""}});
  collecting.lose();
  EXPECT_EQ(collecting.rows.back().state, "stopped");
  EXPECT_TRUE(collecting.state.pending_cleanups.at(0).stale) << "its last checkpoint is fetched when the host is back";
  EXPECT_THAT(collecting.effects_due(), ElementsAre("place", "settle/1/a"));
  collecting.place("b");
  EXPECT_EQ(collecting.state.epoch.value, 2u);
}

TEST(JobMove, KeepsAResultThatComesInTheMiddle) {
  Moving waiting;
  waiting.run_on("a");
  waiting.request();
  waiting.exit_with(0);
  EXPECT_EQ(waiting.state.visible(), JobState::succeeded);

  Moving stopping;
  stopping.run_on("a");
  stopping.request();
  stopping.due();
  stopping.exit_with(0);
  EXPECT_EQ(stopping.state.visible(), JobState::succeeded);
  EXPECT_THAT(stopping.effects_due(), ElementsAre("settle/1/a")) << "it is not started again";
}

TEST(JobMove, ChargesTheProgramForAFailureOfItsOwnInTheMiddle) {
  Moving job;
  job.run_on("a");
  job.request();
  job.due();
  job.exit_with(7);
  EXPECT_EQ(job.state.failures.size(), 1u);
  EXPECT_EQ(job.rows.back().state, "failed");
}

TEST(JobMove, IgnoresRequestsForAnotherEpochOrPhase) {
  Moving job;
  const auto all = [&](Epoch epoch) {
    job.happen(MoveRequested{epoch, "drained", 0, k_patience});
    job.happen(MoveDue{epoch});
    job.happen(MoveBlocked{epoch, "x"});
    job.happen(MoveWithdrawn{epoch});
  };
  const State waiting = job.state;
  all({0});
  EXPECT_EQ(job.state, waiting);
  job.run_on("a");
  job.lose();
  job.run_on("b");
  const State running = job.state;
  all({1});
  EXPECT_EQ(job.state, running);
  job.exit_with(0);
  const State done = job.state;
  all({2});
  EXPECT_EQ(job.state, done);
}

TEST(JobMove, ComesBackFromItsStoredFormAtEveryPoint) {
  Moving job;
  const auto check = [&] {
    const Result<State> again = parse_state(to_json(job.state));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, job.state);
  };
  job.place("a");
  job.happen(Preparing{{1}, "image"});
  check();
  job.happen(PayloadStarted{{1}});
  job.request(3);
  check();
  job.save(4);
  check();
  job.due();
  check();
  job.happen(AttemptEnded{{1}, {EndKind::stopped, -1, 0, ""}});
  check();
  job.happen(Collected{{1}, ""});
  check();
}

TEST(JobMove, ReadsStatesStoredBeforeThereWereMoves) {
  Moving job;
  job.run_on("a");
  std::string text = to_json(job.state);
  const std::string added = ",\"move\":null";
  ASSERT_NE(text.find(added), std::string::npos);
  text.erase(text.find(added), added.size());
  const Result<State> read = parse_state(text);
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, job.state);
}

}  // namespace
}  // namespace gridctl::job::state_move_test
