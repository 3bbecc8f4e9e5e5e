// SPDX-License-Identifier: Apache-2.0
// What the answers to a launch, or their absence, are taken for.
#include "control/follow/launch_protocol.hpp"

#include <gtest/gtest.h>

namespace gridctl::control::launch_protocol_test {
namespace {

using Kind = LaunchResult::Kind;

const Error k_lost = make_error(Code::timed_out, "no answer in time");
const Error k_full = make_error(Code::no_space, "the disk is full");
constexpr Duration k_lost_after = std::chrono::seconds{60};

BootTime at(int seconds) { return BootTime{} + std::chrono::seconds{seconds}; }

LaunchTalk a_talk(LaunchDoubt doubt = {}) {
  wire::AttemptSpec spec;
  spec.job = {"j"};
  spec.epoch = {3};
  return LaunchTalk(spec, std::chrono::hours{1}, {}, std::move(doubt));
}

Answer prepared() { return wire::PrepareReply{at(100), "boot"}; }

Answer seen(wire::AttemptPhase phase) {
  wire::PollReply reply;
  wire::AttemptStatus status;
  status.job = {"j"};
  status.epoch = {3};
  status.phase = phase;
  status.max_epoch = {7};
  reply.attempts.push_back(status);
  return reply;
}

template <class Wanted>
bool asks(const LaunchTalk::Next& next) {
  const auto* ask = std::get_if<Request>(&next);
  return ask != nullptr && std::holds_alternative<Wanted>(*ask);
}

LaunchResult result_of(const LaunchTalk::Next& next) {
  const auto* result = std::get_if<LaunchResult>(&next);
  EXPECT_NE(result, nullptr);
  return result != nullptr ? *result : LaunchResult{};
}

TEST(LaunchTalk, IsCertainAsLongAsNothingWasSent) {
  EXPECT_EQ(a_talk().unreached(k_lost).kind, Kind::not_started);
  LaunchTalk talk = a_talk();
  (void)talk.first();
  EXPECT_EQ(result_of(talk.next(k_lost)).kind, Kind::not_started);
}

TEST(LaunchTalk, DoesNotCallAnUnansweredStartNotStartedWhenTheNextTryFindsNoWay) {
  LaunchTalk talk = a_talk();
  (void)talk.first();
  ASSERT_TRUE(asks<wire::StartRequest>(talk.next(prepared())));
  LaunchResult result = result_of(talk.next(k_lost));
  EXPECT_EQ(result.kind, Kind::unknown);
  LaunchDoubt doubt;
  EXPECT_EQ(judge_launch(result, doubt, k_lost_after, at(10)), LaunchVerdict::again);
  EXPECT_EQ(doubt.kind, LaunchDoubt::Kind::sent);

  EXPECT_EQ(a_talk(doubt).unreached(k_lost).kind, Kind::unknown);
  LaunchTalk again = a_talk(doubt);
  (void)again.first();
  EXPECT_EQ(result_of(again.next(k_lost)).kind, Kind::unknown);
}

TEST(LaunchTalk, LetsTheHostPromiseBeforeItGivesUpWhatMayHaveStarted) {
  const LaunchDoubt doubt{LaunchDoubt::Kind::sent, at(10), "", false};
  LaunchTalk talk = a_talk(doubt);
  const auto next = talk.give_up(not_started(make_error(Code::not_found, "no such checkpoint"), false));
  ASSERT_TRUE(asks<wire::PollRequest>(next));
  const LaunchResult result = result_of(talk.next(seen(wire::AttemptPhase::absent)));
  EXPECT_EQ(result.kind, Kind::not_started);
  EXPECT_EQ(result.host_max_epoch.value, 7u);

  LaunchTalk other = a_talk(doubt);
  (void)other.give_up(not_started(k_full, true));
  EXPECT_EQ(result_of(other.next(seen(wire::AttemptPhase::running))).kind, Kind::accepted);
}

TEST(LaunchTalk, AsksWhetherAnEarlierStartIsThereWhenThisOneIsWithdrawn) {
  LaunchTalk talk = a_talk({LaunchDoubt::Kind::sent, at(10), "", false});
  (void)talk.first();
  ASSERT_TRUE(asks<wire::StartRequest>(talk.next(prepared())));
  const Error withdrawn = make_error(Code::cancelled, "the start is no longer wanted");
  ASSERT_TRUE(asks<wire::PollRequest>(talk.give_up(not_started(withdrawn, false))));
  EXPECT_EQ(result_of(talk.next(seen(wire::AttemptPhase::starting))).kind, Kind::accepted);
}

TEST(LaunchTalk, TakesAFullDisksRefusalForNoPromise) {
  LaunchTalk talk = a_talk();
  (void)talk.first();
  (void)talk.next(prepared());
  ASSERT_TRUE(asks<wire::PollRequest>(talk.next(k_full)));
  LaunchResult result = result_of(talk.next(k_full));
  EXPECT_EQ(result.kind, Kind::unpromised);

  LaunchDoubt doubt;
  EXPECT_EQ(judge_launch(result, doubt, k_lost_after, at(10)), LaunchVerdict::again);
  LaunchTalk again = a_talk(doubt);
  const Request first = again.first();
  EXPECT_TRUE(std::holds_alternative<wire::PollRequest>(first)) << "START is not sent again";
  result = result_of(again.next(k_full));
  EXPECT_EQ(judge_launch(result, doubt, k_lost_after, at(70)), LaunchVerdict::again);
  EXPECT_EQ(judge_launch(result, doubt, k_lost_after, at(71)), LaunchVerdict::failed);
  const job::LaunchFailed failed = launch_failed({3}, 0, result);
  EXPECT_TRUE(failed.host_fault);
  EXPECT_EQ(failed.kind, job::EndKind::disk_full);
}

TEST(LaunchTalk, BlamesTheDiskThatKeepsARefusalFromBeingCertain) {
  LaunchTalk talk = a_talk();
  (void)talk.first();
  (void)talk.next(prepared());
  ASSERT_TRUE(asks<wire::PollRequest>(talk.next(make_error(Code::refused, "not today"))));
  LaunchResult result = result_of(talk.next(k_full));
  LaunchDoubt doubt;
  EXPECT_EQ(judge_launch(result, doubt, k_lost_after, at(10)), LaunchVerdict::again);
  LaunchTalk again = a_talk(doubt);
  (void)again.first();
  result = result_of(again.next(k_full));
  EXPECT_EQ(judge_launch(result, doubt, k_lost_after, at(71)), LaunchVerdict::failed);
  EXPECT_EQ(launch_failed({3}, 0, result).kind, job::EndKind::disk_full) << "no failure of the job to start";
}

TEST(LaunchTalk, LearnsNothingAboutTheJobFromNonsense) {
  LaunchTalk talk = a_talk();
  (void)talk.first();
  const job::LaunchFailed failed = launch_failed(
      {3}, 0, result_of(talk.next(make_error(Code::protocol_violation, "a frame with a wrong checksum"))));
  EXPECT_TRUE(failed.host_fault);
  EXPECT_EQ(failed.kind, job::EndKind::absent);
}

TEST(LaunchTalk, BelievesARefusalBehindAFence) {
  LaunchTalk talk = a_talk();
  (void)talk.first();
  (void)talk.next(prepared());
  const LaunchResult result = result_of(talk.next(make_error(Code::busy, "gpu 0 is leased")));
  EXPECT_EQ(result.kind, Kind::not_started);
  EXPECT_TRUE(result.busy);
  EXPECT_FALSE(launch_failed({3}, 0, result).refused);
}

TEST(LaunchTalk, TellsARefusalFromWhatIsNobodysFault) {
  LaunchTalk talk = a_talk();
  (void)talk.first();
  (void)talk.next(prepared());
  ASSERT_TRUE(asks<wire::PollRequest>(talk.next(make_error(Code::refused, "not today"))));
  const job::LaunchFailed failed = launch_failed({3}, 0, result_of(talk.next(seen(wire::AttemptPhase::absent))));
  EXPECT_TRUE(failed.refused);
  EXPECT_FALSE(failed.host_fault);
}

}  // namespace
}  // namespace gridctl::control::launch_protocol_test
