// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/standing.hpp"

#include <gtest/gtest.h>

#include "sched/place.hpp"
#include "support/results.hpp"

namespace gridctl::sched::standing_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

constexpr std::int64_t k_minute = 60'000;
const std::string k_gpu = "GPU-1";

Sign event(Weight weight, std::int64_t at, const std::string& unit = k_gpu) {
  return {unit, "xid-95", weight, false, {at}, "uncontained memory error"};
}
Sign lasting(Weight weight, const std::string& code = "disk_full", const std::string& unit = "") {
  return {unit, code, weight, true, {}, "it is so"};
}

// A host that is looked at again and again.
class Host {
 public:
  Judgement look(std::int64_t at, std::vector<Sign> signs = {}, bool checked = false) {
    Look look;
    look.now = {at};
    look.boot_id = boot;
    look.signs = std::move(signs);
    look.looked_at = {"", k_gpu};
    Judgement verdict = checked ? judge_checked(standing, look) : judge(standing, look);
    standing = verdict.next;
    return verdict;
  }
  // Clean looks once a minute until `end`; the kinds of changes met.
  std::vector<std::string> clean_until(std::int64_t& now, std::int64_t end) {
    std::vector<std::string> kinds;
    for (; now <= end; now += k_minute)
      for (const Change& change : look(now).changes) kinds.push_back(change.kind);
    return kinds;
  }
  [[nodiscard]] UnitState state(const std::string& unit = k_gpu) const { return standing.state_of(unit); }

  std::string boot = "one";
  HostStanding standing;
};

TEST(Standing, AHostWithoutASignIsOkAndRemembersNothing) {
  Host host;
  EXPECT_TRUE(host.look(0).changes.empty());
  EXPECT_TRUE(host.standing.units.empty());
}

TEST(Standing, ABadEventQuarantinesItsGpuAlone) {
  Host host;
  const Judgement verdict = host.look(0, {event(Weight::bad, 0)});
  ASSERT_EQ(verdict.changes.size(), 1u);
  EXPECT_EQ(verdict.changes[0].kind, "quarantined");
  EXPECT_EQ(verdict.changes[0].text, "uncontained memory error");
  EXPECT_EQ(host.state(), UnitState::quarantined);
  EXPECT_EQ(host.state(""), UnitState::ok);
}

TEST(Standing, ItReturnsByWayOfProbation) {
  Host host;
  host.look(0, {event(Weight::bad, 0)});
  std::int64_t now = k_minute;
  EXPECT_TRUE(host.clean_until(now, 14 * k_minute).empty()) << "before its time";
  EXPECT_EQ(host.clean_until(now, 16 * k_minute), std::vector<std::string>{"probation"});
  EXPECT_EQ(host.state(), UnitState::probation);
  EXPECT_TRUE(host.clean_until(now, 70 * k_minute).empty());
  EXPECT_EQ(host.clean_until(now, 80 * k_minute), std::vector<std::string>{"cleared"});
  EXPECT_EQ(host.state(), UnitState::ok);
}

TEST(Standing, EachRelapseLastsTwiceAsLong) {
  Host host;
  std::int64_t now = 0;
  std::vector<std::int64_t> lasted;
  for (int turn = 0; turn < 4; ++turn) {
    host.look(now, {event(Weight::bad, now)});
    const std::int64_t began = now;
    while (host.state() == UnitState::quarantined) host.look(now += k_minute);
    lasted.push_back((now - began) / k_minute);
  }
  EXPECT_EQ(lasted, (std::vector<std::int64_t>{15, 30, 60, 120}));
}

TEST(Standing, AWeekWithoutATroubleForgetsTheStrikes) {
  Host host;
  host.look(0, {event(Weight::bad, 0)});
  std::int64_t now = k_minute;
  host.clean_until(now, 100 * k_minute);
  EXPECT_EQ(host.standing.units.at(k_gpu).strikes, 1);
  host.look(8ll * 24 * 60 * k_minute);
  EXPECT_TRUE(host.standing.units.empty());
}

TEST(Standing, AConditionHoldsAsLongAsItIsSeenAndNoOneCleanLookEndsIt) {
  Host host;
  for (std::int64_t now = 0; now <= 60 * k_minute; now += k_minute) host.look(now, {lasting(Weight::bad)});
  EXPECT_EQ(host.state(""), UnitState::quarantined);
  EXPECT_EQ(host.standing.units.at("").strikes, 1) << "one trouble, however often it was seen";
  host.look(63 * k_minute);
  EXPECT_EQ(host.state(""), UnitState::quarantined) << "one clean look";
  host.look(64 * k_minute);
  EXPECT_EQ(host.state(""), UnitState::probation);
}

TEST(Standing, AFlappingConditionIsAskedForLongerEachTime) {
  Host host;
  std::int64_t now = 0;
  int returns = 0;
  for (int minute = 0; minute < 240; ++minute, now += k_minute) {
    const bool bad = minute % 4 == 0;
    for (const Change& change : host.look(now, bad ? std::vector{lasting(Weight::bad)} : std::vector<Sign>{}).changes)
      returns += change.kind == "probation";
  }
  EXPECT_LE(returns, 2) << "it does not come and go with each look";
}

TEST(Standing, ADoubtCountsWhenItRepeats) {
  Host host;
  const Sign slow = lasting(Weight::doubt, "tool_hung", k_gpu);
  EXPECT_TRUE(host.look(0, {slow}).changes.empty());
  EXPECT_EQ(host.state(), UnitState::ok);
  host.look(k_minute);
  EXPECT_TRUE(host.look(2 * k_minute, {slow}).changes.empty()) << "a clean look between two doubts";
  host.look(3 * k_minute, {slow});
  EXPECT_EQ(host.state(), UnitState::quarantined);
}

TEST(Standing, ARestartOfTheMachineEndsWhatOnlyARestartMends) {
  Host host;
  host.look(0, {event(Weight::grave, 0)});
  std::int64_t now = k_minute;
  EXPECT_TRUE(host.clean_until(now, 120 * k_minute).empty());
  host.boot = "two";
  const Judgement verdict = host.look(now);
  ASSERT_EQ(verdict.changes.size(), 1u);
  EXPECT_EQ(verdict.changes[0].kind, "probation");
}

TEST(Standing, ARestartDoesNotMendWhatIsStillBroken) {
  Host host;
  host.look(0, {lasting(Weight::grave, "gpu_gone", k_gpu)});
  host.boot = "two";
  host.look(k_minute, {lasting(Weight::grave, "gpu_gone", k_gpu)});
  EXPECT_EQ(host.state(), UnitState::quarantined);
}

TEST(Standing, WhatHappenedLongAgoIsHistory) {
  Host host;
  const Judgement verdict = host.look(100 * k_minute, {event(Weight::bad, 10 * k_minute)});
  ASSERT_EQ(verdict.changes.size(), 1u);
  EXPECT_EQ(verdict.changes[0].kind, "noted");
  EXPECT_EQ(host.state(), UnitState::ok);
}

TEST(Standing, ALastingNoteIsToldOnce) {
  Host host;
  const Sign hot = lasting(Weight::note, "throttled", k_gpu);
  EXPECT_EQ(host.look(0, {hot}).changes.size(), 1u);
  EXPECT_TRUE(host.look(k_minute, {hot}).changes.empty());
  EXPECT_TRUE(host.look(2 * k_minute).changes.empty());
  EXPECT_EQ(host.look(3 * k_minute, {hot}).changes.size(), 1u);
}

TEST(Standing, AGpuThatWasNotLookedAtIsNeitherCleanNorForgotten) {
  Host host;
  host.look(0, {event(Weight::bad, 0)});
  for (std::int64_t now = k_minute; now < 60 * k_minute; now += k_minute) {
    Look look;
    look.now = {now};
    look.boot_id = "one";
    look.looked_at = {""};
    host.standing = judge(host.standing, look).next;
  }
  EXPECT_EQ(host.state(), UnitState::quarantined);
}

TEST(Standing, ACheckByAPersonLiftsWhatIsCleanNow) {
  Host host;
  host.look(0, {event(Weight::grave, 0), lasting(Weight::bad)});
  const Judgement verdict = host.look(k_minute, {lasting(Weight::bad)}, true);
  ASSERT_EQ(verdict.changes.size(), 1u);
  EXPECT_EQ(verdict.changes[0].kind, "cleared");
  EXPECT_EQ(verdict.changes[0].unit, k_gpu);
  EXPECT_EQ(host.state(""), UnitState::quarantined) << "the disk is still full";
}

TEST(Standing, AClockSetBackMakesNoQuarantineEndless) {
  Host host;
  const std::int64_t year = 365ll * 24 * 60 * k_minute;
  host.look(year, {event(Weight::grave, year)});
  std::int64_t now = 0;
  host.clean_until(now, 25 * 60 * k_minute);
  EXPECT_NE(host.state(), UnitState::quarantined);
}

TEST(Standing, XidsOfTheProgramAreNotesAndThoseOfTheHardwareAreNot) {
  for (const int code : {13, 31, 43, 45, 69, 137}) {
    EXPECT_EQ(xid_meaning(code).weight, Weight::note) << code;
    EXPECT_TRUE(xid_meaning(code).jobs_fault) << code;
  }
  for (const int code : {48, 64, 74, 79, 95, 119, 140, 154}) EXPECT_EQ(xid_meaning(code).weight, Weight::grave) << code;
  for (const int code : {63, 94, 59, 999}) EXPECT_EQ(xid_meaning(code).weight, Weight::bad) << code;
  EXPECT_EQ(xid_meaning(92).weight, Weight::note);
  EXPECT_FALSE(xid_meaning(92).jobs_fault);
}

HostFacts with_gpus(const std::string& name, int count) {
  HostFacts facts;
  facts.name = {name};
  facts.inventory.edit().cpus = 8;
  facts.inventory.edit().engines = {{EngineKind::process, "", false, false, ""}};
  for (int i = 0; i < count; ++i) {
    Gpu gpu;
    gpu.name = "NVIDIA A100-SXM4-80GB";
    gpu.uuid = name + "-gpu" + std::to_string(i);
    facts.inventory.edit().gpus.push_back(gpu);
  }
  return facts;
}
job::Spec wants_gpus(int count) {
  job::Spec spec;
  spec.run = "true";
  job::GpuRequest request;
  request.count_min = request.count_max = count;
  spec.resources.gpus = {request};
  return spec;
}

TEST(StandingAndPlacing, AQuarantinedHostIsRefusedForNow) {
  HostFacts ada = with_gpus("ada", 1);
  ada.quarantined = "quarantined for at least 2m: its disk is full";
  const Decision decision = place(wants_gpus(1), {ada}, {});
  ASSERT_FALSE(decision.placement);
  ASSERT_EQ(decision.rejections.size(), 1u);
  EXPECT_EQ(decision.rejections[0].code, "quarantined");
  EXPECT_EQ(decision.rejections[0].detail, ada.quarantined);
  EXPECT_TRUE(decision.could_ever_fit);
}

TEST(StandingAndPlacing, AnUnhealthyGpuIsPassedOverAndNamedWhenItIsMissed) {
  HostFacts ada = with_gpus("ada", 2);
  ada.unhealthy_gpus["ada-gpu0"] = "Xid 95";
  const Decision one = place(wants_gpus(1), {ada}, {});
  ASSERT_TRUE(one.placement);
  EXPECT_EQ(one.placement->gpu_uuids, std::vector<std::string>{"ada-gpu1"});
  const Decision both = place(wants_gpus(2), {ada}, {});
  ASSERT_EQ(both.rejections.size(), 1u);
  EXPECT_EQ(both.rejections[0].code, "unhealthy");
  EXPECT_EQ(both.rejections[0].detail, "ada-gpu0: Xid 95");
  EXPECT_TRUE(both.could_ever_fit);
}

TEST(StandingAndPlacing, AHostOnProbationComesLast) {
  HostFacts ada = with_gpus("ada", 1), bob = with_gpus("bob", 1);
  ada.on_probation = true;
  bob.price_per_hour = 9;
  const Decision decision = place(wants_gpus(1), {ada, bob}, {});
  ASSERT_TRUE(decision.placement);
  EXPECT_EQ(decision.placement->host.value, "bob");
  EXPECT_EQ(place(wants_gpus(1), {ada}, {}).placement->host.value, "ada") << "but it is not left out";
}

TEST(Standing, ItSurvivesBeingKept) {
  Host host;
  host.look(0, {event(Weight::bad, 0), lasting(Weight::note), lasting(Weight::doubt, "slow")});
  host.standing.busy[k_gpu] = "python3";
  host.standing.uncorrected[k_gpu] = 3;
  host.standing.log_us = 77;
  const auto again = parse_standing(to_json(host.standing));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(*again, host.standing);
  EXPECT_THAT(parse_standing("{}"), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_standing("nonsense"), FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::sched::standing_test
