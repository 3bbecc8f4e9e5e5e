// SPDX-License-Identifier: Apache-2.0
// What of a job's machine is stored: every member of it, each for itself, under its name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "job/state.hpp"
#include "support/json_fields.hpp"

namespace gridctl::job::state_fields_test {
namespace {

using gridctl::testing::Json, gridctl::testing::members_of;
using std::chrono::seconds;

Member member(int rank) {
  Member m;
  m.rank = rank;
  m.host = {"host" + std::to_string(rank)};
  m.engine = EngineKind::podman;
  m.gpu_uuids = {"GPU-" + std::to_string(rank) + "a", "GPU-" + std::to_string(rank) + "b"};
  m.cpus = 2.5 + rank;
  m.memory_bytes = 1000 + static_cast<std::uint64_t>(rank);
  m.price_per_hour = 0.25 + rank;
  m.part = Part::collected;
  m.end = End{EndKind::signalled, 7, 9, "how it ended", 10 + rank, "the last line", WallTime{1234 + rank},
              {Advice::blame_host, "the GPU is lost", "a line about it"}};
  m.doing = "image";
  m.address = "10.0.0." + std::to_string(rank);
  m.keep_work = true;
  return m;
}

Attempt attempt() { return {{3}, {8}, {member(0), member(1), member(2)}, {4}, "the cheapest", WallTime{5000}, WallTime{6000}}; }

// With everything set, and no two values alike.
State filled(Phase phase) {
  State s;
  s.id = {"abcdefghijk23"};
  s.policy.lost_after = seconds{91};
  s.policy.max_failures = 13;
  s.policy.restart_on = {75, 76};
  s.policy.fail_on = {64};
  s.policy.lease = seconds{601};
  s.phase = std::move(phase);
  s.reason = "moving";
  s.reason_text = "moving to another host";
  s.epoch = {8};
  s.attempts = {3};
  s.head = {17};
  s.restore = CheckpointSeq{16};
  s.failures = {{{"ada"}, 1, 11, {14}, "oops"}, {{"bob"}, 2, 12, {15}, "again"}};
  s.restarts_in_row = 21;
  s.avoided = {{{"eve"}, "it fails"}, {{"dan"}, "it lies"}};
  s.pending_cleanups = {{{"ada"}, {6}, {1}, true, 1, true}, {{"bob"}, {7}, {2}, false, 2, true}};
  s.recoveries = 22;
  s.lost = seconds{333};
  s.start_failures_in_row = 23;
  s.recovering = true;
  s.cancel = seconds{44};
  s.limit = "budget";
  s.limit_text = "the budget is used up";
  s.failures_max = 0.5;
  s.late = true;
  s.overtaken = "a twin was first";
  s.overtaken_by = Overtaken::tasks_failed;
  s.expected = Expected{1.5, 2.5};
  s.suspects = {{12}, {13}};
  s.proven = {11};
  s.setbacks = {{{"ada"}, Cause::host, 31, WallTime{7000}, "it starts nothing"}, {{"bob"}, Cause::killed, 32, WallTime{7001}, "signal 9"}};
  s.gone_back = 24;
  s.late_directory = true;
  s.ready = {Epoch{25}, true};
  return s;
}

std::vector<State> all() {
  return {filled(Waiting{seconds{5}, "host_lost", "silent", true, WallTime{8000}}),
          filled(Launching{attempt(), {70}, "send", {80}, true, 29'600, "ab12"}),
          filled(Running{attempt(), Move{"drained", {90}, 5, true, {"ada"}}}),
          filled(Stopping{attempt(), seconds{30}, "drained", member(1).end}),
          filled(Collecting{attempt(), *member(2).end, "cheaper"}), filled(Done{JobState::cancelled, 3, {100}})};
}

Result<std::string> again(const std::string& text) {
  TRY_ASSIGN(const State state, parse_state(text));
  return to_json(state);
}

TEST(StateFields, AreReadAsTheyWereWritten) {
  for (const State& state : all()) EXPECT_EQ(parse_state(to_json(state)).value(), state) << to_json(state);
}

TEST(StateFields, AreEachReadForItself) {
  for (const State& state : all())
    gridctl::testing::expect_each_value_counts(std::to_string(state.phase.index()), to_json(state), again);
}

// A member that `fields` forgets is lost with the next restart of the daemon.
TEST(StateFields, AreAllMembers) {
  const std::vector<State> states = all();
  const auto part = [&](std::size_t phase, const char* at) { return Json::parse(to_json(states[phase])).at(Json::json_pointer(at)).size(); };
  EXPECT_EQ(part(0, ""), members_of<State> - 1) << "the list of what is saved is made anew";
  EXPECT_EQ(part(0, "/at"), members_of<Waiting> + 1) << "and which it is";
  EXPECT_EQ(part(1, "/at"), members_of<Launching> + 1);
  EXPECT_EQ(part(2, "/at"), members_of<Running> + 1);
  EXPECT_EQ(part(3, "/at"), members_of<Stopping> + 1);
  EXPECT_EQ(part(4, "/at"), members_of<Collecting> + 1);
  EXPECT_EQ(part(5, "/at"), members_of<Done> + 1);
  EXPECT_EQ(part(2, "/at/move"), members_of<Move>);
  EXPECT_EQ(part(1, "/at/attempt"), members_of<Attempt>);
  EXPECT_EQ(part(1, "/at/attempt/members/1"), members_of<Member>);
  EXPECT_EQ(part(1, "/at/attempt/members/1/end"), members_of<End>);
  EXPECT_EQ(part(0, "/failures/0"), members_of<Failure>);
  EXPECT_EQ(part(0, "/avoided/0"), members_of<Avoided>);
  EXPECT_EQ(part(0, "/loose_ends/0"), members_of<PendingCleanup>);
  EXPECT_EQ(part(0, "/setbacks/0"), members_of<Setback>);
  EXPECT_EQ(part(1, "/at/attempt/members/1/end/said"), members_of<LastWords>);
  EXPECT_EQ(part(0, "/expected"), members_of<Expected>);
}

// Two names that were swapped in writing and in reading would read every state of an earlier version wrongly.
TEST(StateFields, HaveTheNamesThatEarlierVersionsWrote) {
  const std::filesystem::path file = std::filesystem::path(GRIDCTL_SOURCE_DIR) / "tests/data/state.json";
  Json now = Json::array();
  for (const State& state : all()) now.push_back(Json::parse(to_json(state)));
  if (std::getenv("GRIDCTL_ACCEPT") != nullptr) std::ofstream(file) << now.dump(1) << "\n";
  std::ifstream in(file);
  const Json known = Json::parse(std::string(std::istreambuf_iterator<char>(in), {}), nullptr, false);
  EXPECT_EQ(known, now) << "GRIDCTL_ACCEPT=1 writes " << file << " anew: earlier versions read it";
}

}  // namespace
}  // namespace gridctl::job::state_fields_test
