// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "control/follow/heartbeat_rules.hpp"
#include "control/reach/pace.hpp"
#include "hand_clock.hpp"
#include "unit/store/remote_fixtures.hpp"

namespace gridctl::control::heartbeat_rules_test {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A job on "a", as far as its attempt has come.
struct Followed {
  job::State state;
  WallTime now{1'000'000};
  Followed() { happen(job::Placed{{job::Member{0, {"a"}, EngineKind::process, {}, 1, 0, 0}}, "x"}); }
  void happen(job::Event what) { state = job::step(state, {now, std::move(what)}).state; }
  void run() { happen(job::PayloadStarted{{1}}); }
  [[nodiscard]] Reading read(const wire::AttemptStatus& status, bool fenced = false, const char* host = "a") const {
    return read_status(state, {host}, fenced, status);
  }
};

wire::AttemptStatus told(wire::AttemptPhase phase, std::uint64_t epoch = 1) {
  wire::AttemptStatus status;
  status.epoch = {epoch};
  status.phase = phase;
  return status;
}

using wire::AttemptPhase;

TEST(HostsWord, OfAnotherEpochOrHostSaysNothing) {
  Followed job;
  job.run();
  EXPECT_TRUE(job.read(told(AttemptPhase::running)).output);
  EXPECT_FALSE(job.read(told(AttemptPhase::running, 2)).output);
  EXPECT_FALSE(job.read(told(AttemptPhase::running), false, "b").output);
  EXPECT_FALSE(read_status({}, {"a"}, false, told(AttemptPhase::running, 0)).output) << "there is no attempt";
}

TEST(HostsWord, StartsARunOnce) {
  Followed job;
  wire::AttemptStatus status = told(AttemptPhase::running);
  status.running_ms_ago = 700;
  const Reading first = job.read(status);
  ASSERT_THAT(first.events, SizeIs(1));
  EXPECT_EQ(std::get<job::PayloadStarted>(first.events[0]).ago, 700ms);
  EXPECT_TRUE(first.output && first.checkpoints);
  status.running_ms_ago = -1;
  EXPECT_EQ(std::get<job::PayloadStarted>(job.read(status).events[0]).ago, 0s) << "it did not tell";
  job.run();
  EXPECT_THAT(job.read(status).events, IsEmpty());
  EXPECT_TRUE(job.read(told(AttemptPhase::stopping)).checkpoints);
}

TEST(HostsWord, TellsWhatAStartIsDoing) {
  Followed job;
  wire::AttemptStatus status = told(AttemptPhase::starting);
  Reading reading = job.read(status);
  EXPECT_THAT(reading.events, IsEmpty());
  EXPECT_TRUE(reading.output) << "what setup says";
  EXPECT_FALSE(reading.checkpoints);
  status.doing = "image";
  reading = job.read(status);
  ASSERT_THAT(reading.events, SizeIs(1));
  EXPECT_EQ(std::get<job::Preparing>(reading.events[0]).doing, "image");
  job.happen(reading.events[0]);
  EXPECT_THAT(job.read(status).events, IsEmpty()) << "it is known";
}

TEST(HostsWord, NotHereIsNewsOnlyWhereItMustBeThere) {
  Followed job;
  EXPECT_THAT(job.read(told(AttemptPhase::absent)).events, IsEmpty()) << "START may be on its way";
  EXPECT_THAT(job.read(told(AttemptPhase::absent), true).events, SizeIs(1));
  job.run();
  const Reading gone = job.read(told(AttemptPhase::absent));
  ASSERT_THAT(gone.events, SizeIs(1));
  EXPECT_EQ(std::get<job::AttemptEnded>(gone.events[0]).end.kind, job::EndKind::absent);
}

TEST(HostsWord, EndsAnAttemptAsTheHostSays) {
  const std::map<wire::EndReason, job::EndKind> kinds{
      {wire::EndReason::none, job::EndKind::vanished},       {wire::EndReason::vanished, job::EndKind::vanished},
      {wire::EndReason::exited, job::EndKind::exited},       {wire::EndReason::signalled, job::EndKind::signalled},
      {wire::EndReason::oom, job::EndKind::oom},             {wire::EndReason::stopped, job::EndKind::stopped},
      {wire::EndReason::lease_expired, job::EndKind::lease_expired}, {wire::EndReason::host_rebooted, job::EndKind::host_rebooted},
      {wire::EndReason::start_failed, job::EndKind::start_failed},   {wire::EndReason::disk_full, job::EndKind::disk_full},
      {wire::EndReason::image_failed, job::EndKind::image_failed},   {wire::EndReason::limit, job::EndKind::limit}};
  for (const auto& [reason, kind] : kinds) {
    Followed job;
    wire::AttemptStatus status = told(AttemptPhase::ended);
    status.end = reason;
    status.exit_code = 3, status.signal = 9, status.detail = "why", status.ended_ms_ago = 500;
    const Reading reading = job.read(status);
    ASSERT_THAT(reading.events, SizeIs(1)) << "it never ran";
    const auto& ended = std::get<job::AttemptEnded>(reading.events[0]);
    EXPECT_EQ(ended.end.kind, kind);
    EXPECT_EQ(ended.end.exit_code, 3);
    EXPECT_EQ(ended.end.signal, 9);
    EXPECT_EQ(ended.end.detail, "why");
    EXPECT_EQ(ended.ago, 500ms);
    status.started_ms_ago = 0;
    EXPECT_THAT(job.read(status).events, SizeIs(2)) << "it ran, and nobody saw it begin";
    job.run();
    EXPECT_THAT(job.read(status).events, SizeIs(1));
    job.happen(job.read(status).events[0]);
    EXPECT_THAT(job.read(status).events, IsEmpty()) << "it has ended";
  }
}

TEST(HostsWord, NamesTheNewestCheckpointThatIsNotKnown) {
  wire::AttemptStatus status;
  EXPECT_EQ(newest_beyond(status, 0), nullptr);
  status.checkpoints.resize(3);
  status.checkpoints[0].number = 4, status.checkpoints[1].number = 6, status.checkpoints[2].number = 5;
  EXPECT_EQ(newest_beyond(status, 5), &status.checkpoints[1]);
  EXPECT_EQ(newest_beyond(status, 6), nullptr);
}

TEST(HostsSilence, LosesAMemberWhenItsJobGivesUp) {
  Followed job;
  job.run();
  job.state.policy.lost_after = 3s;
  job::FailureDetector silence(5s);
  const job::Member& member = job.state.attempt()->lead();
  for (std::int64_t second = 1; second <= 3; ++second) silence.tick({second * 1'000'000'000}, true);
  EXPECT_FALSE(read_silence(job.state, member, silence)) << "two seconds";
  silence.tick({4'000'000'000}, true);
  const auto lost = read_silence(job.state, member, silence);
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->epoch.value, 1u);
  EXPECT_EQ(lost->silent_for, 3s);
  job::Member collected = member;
  collected.part = job::Part::collected;
  EXPECT_FALSE(read_silence(job.state, collected, silence)) << "nothing of it is needed any more";
  EXPECT_FALSE(read_silence({}, member, silence));
}

TEST(Heartbeat, IsATwelfthOfTheShortestPatience) {
  EXPECT_EQ(heartbeat_for({}, false), k_heartbeat_idle);
  EXPECT_EQ(heartbeat_for({}, true), k_heartbeat_max);
  EXPECT_EQ(heartbeat_for({60s, 24s}, true), 2s);
  EXPECT_EQ(heartbeat_for({1s}, true), k_heartbeat_min);
  EXPECT_EQ(heartbeat_for({10min}, true), k_heartbeat_max);
}

}  // namespace
}  // namespace gridctl::control::heartbeat_rules_test
