// SPDX-License-Identifier: Apache-2.0
// How hosts are: when each is asked, what is kept of its answer, and who is told.
#include <gmock/gmock.h>

#include "db/database.hpp"
#include "hand_fleet.hpp"

namespace gridctl::control::fleet_health_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using testing::FleetTest;
using sched::UnitState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class FleetHealth : public FleetTest {
 protected:
  FleetHealth() : FleetTest(1min) {
    add("ada");
    registry::Provider provider = row("ada");
    for (const char* uuid : {"GPU-1", "GPU-2"}) {
      Gpu gpu;
      gpu.uuid = uuid;
      gpu.vendor = Vendor::nvidia;
      gpu.pci = uuid == std::string("GPU-1") ? "00000000:3b:00.0" : "00000000:43:00.0";
      provider.inventory.edit().gpus.push_back(gpu);
    }
    EXPECT_THAT(registry.update_provider(provider), IsOk());
    report.boot_id = "boot";
    report.taken_at = report.gpus_at = {1'000'000'000};
    report.disk.total_bytes = 100ull << 30;
    report.disk.free_bytes = 50ull << 30;
    for (const char* uuid : {"GPU-1", "GPU-2"}) {
      wire::GpuHealth gpu;
      gpu.uuid = uuid;
      report.gpus.push_back(gpu);
    }
  }
  std::size_t looks() {
    const auto asked = line("ada").all_asked();
    return static_cast<std::size_t>(std::count(asked.begin(), asked.end(), "health"));
  }
  wire::HealthRequest look() {
    for (const wire::Frame& frame : std::vector(line("ada").sent.rbegin(), line("ada").sent.rend()))
      if (wire::request_name(frame.payload) == "health") return *wire::parse_health_request(frame.payload);
    return {};
  }
  // What was asked comes first, as from an agent.
  void tell(bool under_way = false, bool with_report = true) {
    wire::HealthReply told;
    told.host_time = report.taken_at + 2s;
    told.wall_ms = clock.wall().ms;
    told.under_way = under_way;
    if (with_report) told.report = report;
    answer_all("ada", told);
  }
  void answer_all(const std::string& name, const wire::HealthReply& told) {
    for (const wire::Frame& frame : std::exchange(line(name).sent, {})) {
      if (wire::request_name(frame.payload) == "health") line(name).say(wire::FrameKind::reply, frame.stream, wire::encode(told));
      if (wire::request_name(frame.payload) == "poll") {
        wire::PollReply polled;
        polled.host_time = clock.boot();
        polled.boot_id = "boot";
        line(name).say(wire::FrameKind::reply, frame.stream, wire::encode(polled));
      }
    }
  }
  void begin() {
    tick();
    tick();
    ASSERT_EQ(looks(), 1u);
  }
  void xid(int code) {
    report.events = {{"xid", code, "0000:3b:00.0", "text", report.events.empty() ? 5 : report.events[0].stamp_us + 1}};
    report.taken_at = report.gpus_at = report.taken_at + 1min;
  }
  void use(const std::set<std::string>& gpus) {
    HostUse used;
    used.gpus = gpus;
    fleet().set_use({{"ada", used}}, 5s);
  }
  std::optional<WallTime> saved() {
    const auto kept = registry.host_report({"ada"}, "standing");
    return *kept ? std::optional((*kept)->at) : std::nullopt;
  }
  wire::HealthReport report;
};

TEST_F(FleetHealth, IsAskedForOnceInItsPeriod) {
  begin();
  EXPECT_EQ(look().max_age, 45s) << "the host may have looked for somebody else";
  EXPECT_EQ(look().known, BootTime{});
  tell();
  tick(59s);
  tell();
  EXPECT_EQ(looks(), 0u);
  tick(1s);
  EXPECT_EQ(looks(), 1u);
  EXPECT_EQ(look().known, report.taken_at);
}

TEST_F(FleetHealth, OfAHostThatHasComeBackIsTheFirstThing) {
  begin();
  tell();
  line("ada").on_closed(make_error(Code::host_unreachable, "broke"));
  tick(1s);
  tick();
  EXPECT_EQ(looks(), 1u);
}

TEST_F(FleetHealth, ThatIsBeingMadeIsComeForSoon) {
  begin();
  tell(true, false);
  for (int i = 1; i < 4; ++i) {
    tick(4999ms);
    EXPECT_EQ(looks(), 0u) << i;
    tick(1ms);
    EXPECT_EQ(looks(), 1u) << i;
    EXPECT_EQ(look().max_age, 1min) << "what was made meanwhile will do";
    tell(true, false);
  }
  tick(6s);
  tell();
  EXPECT_EQ(looks(), 0u) << "then at the next time only";
}

TEST_F(FleetHealth, OfAGpuThatWasGivenBackIsVerifiedAtOnce) {
  use({"GPU-1"});
  begin();
  tell();
  tick(10s);
  tell();
  EXPECT_EQ(looks(), 0u);
  use({});
  tick();
  EXPECT_EQ(looks(), 1u);
  report.gpus[0].processes.emplace();
  report.gpus[0].memory_used = 10ull << 30;
  report.taken_at = report.gpus_at = report.taken_at + 1min;
  tell();
  EXPECT_THAT(ears.take(), Contains("ada changed 1")) << "what it left is a fault";
  EXPECT_NE(host("ada").health.standing.state_of("GPU-1"), UnitState::ok);
  EXPECT_THAT(host("ada").health.vacated, IsEmpty());
}

TEST_F(FleetHealth, OfOldFiguresVerifiesNothing) {
  use({"GPU-1"});
  begin();
  tell();
  use({});
  tick();
  report.taken_at = report.taken_at + 1min;  // GPUs were not looked at
  tell();
  EXPECT_THAT(host("ada").health.vacated, ElementsAre("GPU-1"));
}

TEST_F(FleetHealth, KeepsAndTellsWhatHasChanged) {
  begin();
  tell();
  ears.take();
  EXPECT_TRUE(saved()) << "the first look";
  xid(95);
  tick(1min);
  tell();
  EXPECT_THAT(ears.take(), Contains("ada changed 1"));
  EXPECT_EQ(saved(), clock.wall());
  EXPECT_EQ(host("ada").health.standing.state_of("GPU-1"), UnitState::quarantined);
  EXPECT_THAT(registry.host_events({"ada"}, 0)->back().kind, "quarantined");
  std::vector<sched::HostFacts> facts(1);
  facts[0].name = {"ada"};
  fleet().judge(facts);
  EXPECT_TRUE(facts[0].unhealthy_gpus.contains("GPU-1"));
}

TEST_F(FleetHealth, WhatCouldNotBeWrittenDownIsJudgedAnew) {
  begin();
  tell();
  ears.take();
  db::Database database = *db::Database::open(dir.path() / "state.db");
  ASSERT_THAT(database.execute("CREATE TRIGGER fails BEFORE INSERT ON host_events BEGIN SELECT RAISE(ABORT, 'the disk fails'); END"), IsOk());
  xid(95);
  tick(1min);
  tell();
  EXPECT_EQ(host("ada").health.standing.state_of("GPU-1"), UnitState::ok) << "nobody would ever hear of it";
  EXPECT_THAT(ears.take(), Not(Contains("ada changed 1")));
  ASSERT_THAT(database.execute("DROP TRIGGER fails"), IsOk());
  report.taken_at = report.gpus_at = report.taken_at + 1min;
  tick(1min);
  tell();
  EXPECT_EQ(host("ada").health.standing.state_of("GPU-1"), UnitState::quarantined);
  EXPECT_EQ(registry.host_events({"ada"}, 0)->back().kind, "quarantined");
}

TEST_F(FleetHealth, TellsJobsOfAGpuThatIsGoneAndOfNoOther) {
  begin();
  tell();
  xid(95);
  tick(1min);
  tell();
  EXPECT_THAT(ears.take(), Not(Contains(HasSubstr("lost GPU")))) << "it is bad, not gone";
  xid(79);
  report.events[0].pci = "0000:43:00.0";
  tick(1min);
  tell();
  EXPECT_THAT(ears.take(), Contains(HasSubstr("ada lost GPU-2")));
  report.gpus[0].problem = "GPU is lost";
  report.taken_at = report.gpus_at = report.taken_at + 1min;
  tick(1min);
  tell();
  EXPECT_THAT(ears.take(), Contains(HasSubstr("ada lost GPU-2"))) << "again at each look";
}

TEST_F(FleetHealth, WithNothingNewIsWrittenEachTenMinutes) {
  begin();
  tell();
  const WallTime first = *saved();
  const auto look_again = [&] {
    report.taken_at = report.gpus_at = report.taken_at + 1min;
    tick(1min);
    tell();
    fleet().save_news();
    return *saved();
  };
  for (int i = 1; i <= 10; ++i) EXPECT_EQ(look_again(), first) << i;
  const WallTime then = look_again();
  EXPECT_EQ(then, clock.wall());
}

// One transaction for what all hosts have told: none of it is written when it fails.
TEST_F(FleetHealth, WhatCouldNotBeWrittenIsWrittenWithTheNext) {
  begin();
  tell();
  fleet().save_news();
  const WallTime first = *saved();
  const std::optional<WallTime> seen = row("ada").last_seen_at;
  ASSERT_TRUE(seen);
  db::Database database = *db::Database::open(dir.path() / "state.db");
  ASSERT_THAT(database.execute("CREATE TRIGGER fails BEFORE INSERT ON host_reports BEGIN SELECT RAISE(ABORT, 'the disk fails'); END"), IsOk());
  for (int i = 0; i < 11; ++i) {
    report.taken_at = report.gpus_at = report.taken_at + 1min;
    tick(1min);
    tell();
  }
  fleet().save_news();
  ASSERT_EQ(saved(), first);
  const std::optional<WallTime> before = row("ada").last_seen_at;
  ASSERT_THAT(database.execute("DROP TRIGGER fails"), IsOk());
  fleet().save_news();
  EXPECT_EQ(saved(), clock.wall());
  EXPECT_GT(row("ada").last_seen_at->ms, before->ms) << "nobody had told of it again";
}

TEST_F(FleetHealth, JudgedBySomebodyElseIsAdopted) {
  begin();
  tell();
  xid(95);
  tick(1min);
  tell();
  ASSERT_EQ(host("ada").health.standing.state_of("GPU-1"), UnitState::quarantined);
  sched::HostStanding cleared = host("ada").health.standing;
  cleared.units.clear();
  clock.pass(1s);
  const auto save = [&](WallTime at, const std::string& body) {
    EXPECT_THAT(registry.save_host_report({{"ada"}, "standing", at, body}), IsOk());
    fleet().load_standings();
    return host("ada").health.standing.state_of("GPU-1");
  };
  EXPECT_EQ(save({clock.wall().ms - 1000}, sched::to_json(cleared)), UnitState::quarantined) << "no newer than ours";
  EXPECT_EQ(save(clock.wall(), "no JSON"), UnitState::quarantined);
  EXPECT_EQ(save(clock.wall(), sched::to_json(cleared)), UnitState::ok);
  clock.pass(1s);
  // While it was judged by a person a look of ours had news: it is made anew next time.
  ASSERT_THAT(registry.save_host_report({{"ada"}, "standing", clock.wall(), sched::to_json(cleared)}), IsOk());
  xid(95);
  tick(1min);
  tell();
  EXPECT_EQ(host("ada").health.standing.state_of("GPU-1"), UnitState::ok);
  xid(95);
  tick(1min);
  tell();
  EXPECT_EQ(host("ada").health.standing.state_of("GPU-1"), UnitState::quarantined);
}

TEST_F(FleetHealth, ARefusalForRoomIsLookedInto) {
  begin();
  tell();
  fleet().refused_for_room({"ada"}, clock.boot() + 10s);
  tick();
  EXPECT_EQ(looks(), 1u);
}

TEST_F(FleetHealth, WhatAnAnswerTookIsNoDifferenceOfClocks) {
  for (const char* other : {"bob", "carol"}) add(other);
  ASSERT_TRUE(fleet().refresh());
  begin();
  const auto answers = [&](const std::string& name, WallTime written) {
    wire::HealthReply told;
    told.wall_ms = written.ms;
    told.host_time = report.taken_at + 2s;
    told.report = report;
    answer_all(name, told);
  };
  const auto is_off = [&] { return host("ada").health.standing.noted.contains(" clock_off"); };
  const WallTime asked = clock.wall();
  clock.pass(9s);
  for (const char* other : {"bob", "carol"}) answers(other, clock.wall());
  answers("ada", asked);  // at once, and the way back took nine seconds
  EXPECT_FALSE(is_off());
  report.taken_at = report.gpus_at = report.taken_at + 1min;
  tick(1min);
  const WallTime again = clock.wall();
  clock.pass(9s);
  answers("ada", {again.ms - 9000});
  EXPECT_TRUE(is_off()) << "it lies nine seconds beyond that";
}

TEST_F(FleetHealth, BelievesAClockOnlyAgainstOthers) {
  begin();
  add("bob");
  ASSERT_TRUE(fleet().refresh());
  wire::HealthReply told;
  told.wall_ms = clock.wall().ms + 3'600'000;
  told.host_time = report.taken_at;
  told.report = report;
  for (const wire::Frame& frame : std::exchange(line("ada").sent, {}))
    if (wire::request_name(frame.payload) == "health") line("ada").say(wire::FrameKind::reply, frame.stream, wire::encode(told));
  EXPECT_FALSE(host("ada").health.standing.noted.contains(" clock_off"));
  EXPECT_EQ(host("ada").health.standing.state_of(""), UnitState::ok) << "bob has not been heard";
}

}  // namespace
}  // namespace gridctl::control::fleet_health_test
