// SPDX-License-Identifier: Apache-2.0
// Gangs on hosts over lines by hand: what their members prove before they start, and how a checkpoint of several is put
// together.
#include <mutex>

#include "control/follow/attempts.hpp"
#include "control/reach/pace.hpp"
#include "followed_jobs.hpp"
#include "job/rank_start.hpp"
#include "scripted_freight.hpp"

namespace gridctl::control {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::IsOk;
using testing::tree;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

struct NoPacer : Pacer {
  void place_after(const TrackedJob&, Duration) override {}
  sched::Interval interval_of(const TrackedJob&) override { return {}; }
  void retune(const TrackedJob&) override {}
};

// A gang on ada, bob and eve.
class GangOnHosts : public testing::FollowedJobs {
 protected:
  GangOnHosts() {
    for (const char* name : {"ada", "bob", "eve"}) add(name);
    EXPECT_TRUE(fleet().refresh());
    tick();
    script.answers("prepare", wire::encode(wire::PrepareReply{{1}, "boot"}));
    script.answers("start", wire::encode(wire::StartReply{}));
    script.answers("stop");
    script.answers("clean");
    bulk.proves = [this](const std::string& from, const std::string& to, std::uint16_t port, std::uint64_t bytes) -> Result<PortProof> {
      proven.push_back(from + "-" + to + (bytes > 0 ? " with bytes" : ""));
      ports.insert(port);
      PortProof proof;
      proof.contact.works = true;
      proof.contact.address = "10.0.0." + std::to_string(to[0]);
      proof.rtt = 1ms;
      proof.rate_there = from == "bob" ? 2e9 : 1e10;
      return proof;
    };
  }
  [[nodiscard]] World world() { return {clock, run, net, registry, bulk, folders}; }
  void later(Duration time) {
    clock.pass(time);
    run.fire();
    attempts.tick(clock.boot());
    run.settle();
  }
  void placed(const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}) {
    submit("gang", [&](job::Spec& spec) {
      spec.num_nodes = 3;
      shape(spec);
    });
    std::vector<job::Member> members;
    for (const char* name : {"ada", "bob", "eve"})
      members.push_back({static_cast<int>(members.size()), {name}, EngineKind::process, {}, 1, 0, 0});
    book.apply({"gang"}, job::Placed{members, "all three"});
    run.settle();
    run.fire();
    run.settle();
  }
  void runs() {
    placed();
    for (const char* name : {"ada", "bob", "eve"}) says(name, wire::AttemptPhase::running);
    ASSERT_NE(job("gang").in<job::Running>(), nullptr) << job("gang").state().reason_text;
    script.asked.clear();
  }
  void says(const std::string& name, wire::AttemptPhase phase, std::uint64_t saved = 0,
            const std::function<void(wire::AttemptStatus&)>& change = [](auto&) {}) {
    wire::AttemptStatus status;
    status.job = {"gang"};
    status.epoch = job("gang").state().epoch;
    status.phase = phase;
    if (saved > 0) {
      wire::HostCheckpoint one;
      one.number = saved;
      one.root = tree(static_cast<int>(saved));
      one.how = "torch:whole";
      one.metrics = {{"step", static_cast<double>(saved) * 10}};
      status.checkpoints = {one};
    }
    change(status);
    wire::PollReply reply;
    reply.attempts = {status};
    script.replies["poll"] = {wire::encode(reply)};
    static_cast<FleetListener&>(attempts).polled(host(name), reply);
    run.settle();
  }
  void merges_to(int root, std::vector<std::uint64_t> numbers) {
    bulk.merges = [=]() -> Result<MergedParts> {
      MergedParts merged;
      merged.root = tree(root);
      merged.bytes = 3000;
      merged.files = 12;
      merged.numbers = numbers;
      return merged;
    };
  }
  void misses(const std::string& what) {
    bulk.merges = [=]() -> Result<MergedParts> {
      MergedParts merged;
      merged.missing = what;
      return merged;
    };
  }
  std::vector<std::string> told(const std::string& kind) {
    std::vector<std::string> texts;
    for (const auto events = *registry.events({"gang"}, 0, 0); const registry::EventRecord& event : events)
      if (event.kind == kind) texts.push_back(event.text);
    return texts;
  }
  const job::State& state() { return job("gang").state(); }

  testing::ScriptedFreight bulk;
  testing::Script& script = bulk.script;
  NoPacer pacer;
  Attempts attempts{world(), book, fleet(), pacer};
  std::vector<std::string> proven;
  std::set<std::uint16_t> ports;
};

// --- Before it starts ------------------------------------------------------------------------------------------------

TEST_F(GangOnHosts, StartsWhenAllAreReadyAndReachEachOther) {
  placed();
  EXPECT_THAT(proven, UnorderedElementsAre("ada-bob with bytes", "bob-eve with bytes", "eve-ada with bytes", "bob-ada"))
      << "neighbours measure their rate";
  EXPECT_THAT(told("gang_connected"), ElementsAre("the members reach each other; slowest is bob to ada with 2.00 Gbit/s"));
  const auto* launching = job("gang").in<job::Launching>();
  ASSERT_NE(launching, nullptr);
  EXPECT_TRUE(launching->connected);
  EXPECT_EQ(launching->port, job::gang_port({"gang"}, {1}));
  EXPECT_THAT(ports, ElementsAre(static_cast<std::uint16_t>(launching->port)));
  EXPECT_EQ(launching->token.size(), 64u);
  EXPECT_EQ(launching->attempt.members[1].address, "10.0.0.98");
  EXPECT_EQ(std::count(script.asked.begin(), script.asked.end(), "start"), 3);
  const auto start = wire::parse_start(script.payloads["start"]);
  ASSERT_TRUE(start && start->spec.gang);
  EXPECT_EQ(to_hex(start->spec.gang->token), launching->token);
  EXPECT_EQ(start->spec.gang->port, launching->port);
  EXPECT_THAT(told("member_prepared"), SizeIs(3));
}

TEST_F(GangOnHosts, TakesOtherPortsWhereSomebodyListensFourTimes) {
  int tries = 0;
  bulk.proves = [&](const std::string&, const std::string&, std::uint16_t port, std::uint64_t) -> Result<PortProof> {
    ++tries;
    ports.insert(port);
    return make_error(Code::busy, "somebody listens there");
  };
  placed();
  for (int i = 0; i < 6; ++i) later(1s);
  EXPECT_EQ(tries, 4);
  EXPECT_THAT(ports, SizeIs(4));
  EXPECT_THAT(state().reason_text, HasSubstr("somebody listens there"));
  EXPECT_EQ(state().start_failures_in_row, 1);
}

TEST_F(GangOnHosts, BlamesNobodyWhenAMemberCannotBeAsked) {
  bulk.proves = [](const std::string&, const std::string&, std::uint16_t, std::uint64_t) -> Result<PortProof> {
    return make_error(Code::host_unreachable, "no route");
  };
  placed();
  EXPECT_THAT(told("launch_failed"), ElementsAre(HasSubstr("no route")));
  EXPECT_THAT(state().avoided, IsEmpty());
  EXPECT_NE(job("gang").in<job::Waiting>(), nullptr);
}

TEST_F(GangOnHosts, AvoidsTheHostThatIsNotReachedAndSaysWhatHelps) {
  const auto works = bulk.proves;
  bulk.proves = [works](const std::string& from, const std::string& to, std::uint16_t port, std::uint64_t bytes) {
    Result<PortProof> proof = works(from, to, port, bytes);
    if (to == "eve") proof->contact = {false, "", "nothing comes through"};
    return proof;
  };
  placed();
  ASSERT_THAT(state().avoided, SizeIs(1));
  EXPECT_EQ(state().avoided[0].host.value, "eve");
  EXPECT_THAT(state().reason_text, AllOf(HasSubstr("bob does not reach eve on port "), HasSubstr("; a firewall of eve")));
  EXPECT_THAT(told("gang_connected"), IsEmpty());
}

TEST_F(GangOnHosts, WhoseHostWasRemovedMeanwhileIsPlacedAnew) {
  submit("gang", [](job::Spec& spec) { spec.num_nodes = 2; });
  book.apply({"gang"}, job::Placed{{job::Member{0, {"ada"}, {}, {}, 1, 0, 0}, job::Member{1, {"gone"}, {}, {}, 1, 0, 0}}, "x"});
  run.settle();
  EXPECT_NE(job("gang").in<job::Waiting>(), nullptr);
}

// --- Checkpoints -----------------------------------------------------------------------------------------------------

TEST_F(GangOnHosts, ACheckpointOfAllIsWrittenDownAsOne) {
  runs();
  merges_to(50, {3, 4, 5});
  bulk.bytes = 100;
  says("ada", wire::AttemptPhase::running, 3);
  EXPECT_EQ(bulk.merged, 0) << "nobody knows yet whether the others save anything";
  says("bob", wire::AttemptPhase::running, 4);
  says("eve", wire::AttemptPhase::running, 5);
  EXPECT_EQ(bulk.merged, 1);
  ASSERT_THAT(bulk.parts, SizeIs(3));
  EXPECT_EQ(bulk.parts[1][0].member, "bob");
  EXPECT_EQ(bulk.parts[1][0].root, tree(4));
  EXPECT_EQ(bulk.parts[1][0].number, 4u);
  EXPECT_EQ(bulk.parts[1][0].first_rank, 1u);
  EXPECT_EQ(bulk.parts[2][0].first_rank, 2u);
  EXPECT_EQ(bulk.parts[2][0].ranks, 1u);
  EXPECT_EQ(bulk.parts[2][0].step, 50);
  EXPECT_FALSE(bulk.parts[2][0].nothing);
  const auto kept = *registry.checkpoints({"gang"});
  ASSERT_THAT(kept, SizeIs(1));
  EXPECT_EQ(kept[0].root, tree(50));
  EXPECT_EQ(kept[0].host_number, 12u) << "the sum grows with every new part";
  EXPECT_EQ(kept[0].bytes, 3000u);
  EXPECT_EQ(kept[0].files, 12u);
  EXPECT_EQ(kept[0].how, "torch:whole");
  EXPECT_FALSE(kept[0].provisional);
  EXPECT_EQ(state().head.value, 1u);
  EXPECT_EQ(attempts.newest_there(job("gang")), 12u);
  says("eve", wire::AttemptPhase::running, 5);
  EXPECT_THAT(*registry.checkpoints({"gang"}), SizeIs(1)) << "there is nothing new";
}

TEST_F(GangOnHosts, ACheckpointOfWhichAPartIsUnsureIsUnsure) {
  runs();
  merges_to(50, {3, 4, 5});
  for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
    says(name, wire::AttemptPhase::running, static_cast<std::uint64_t>(number),
         [&](wire::AttemptStatus& status) { status.checkpoints[0].provisional = std::string(name) == "bob"; });
  later(20s);
  for (const char* name : {"ada", "bob", "eve"}) says(name, wire::AttemptPhase::running);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  EXPECT_TRUE(registry.checkpoints({"gang"})->front().provisional);
}

TEST_F(GangOnHosts, AMemberThatSavesNothingIsNotWaitedForWhenItHasToldSo) {
  runs();
  merges_to(50, {3, 0, 0});
  says("ada", wire::AttemptPhase::running, 3);
  for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running);
  later(2s);
  EXPECT_EQ(bulk.merged, 0) << "they have not told since";
  for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running);
  later(2s);
  EXPECT_EQ(bulk.merged, 1);
  EXPECT_TRUE(bulk.parts[1][0].nothing);
  EXPECT_FALSE(bulk.parts[1][0].settled);
  EXPECT_EQ(bulk.parts[1][0].member, "bob");
  EXPECT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
}

TEST_F(GangOnHosts, WhyThereIsNoneYetIsToldWhenItStaysSo) {
  runs();
  misses("no step has been saved by all members yet");
  for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
    says(name, wire::AttemptPhase::running, static_cast<std::uint64_t>(number));
  EXPECT_THAT(told("checkpoint_incomplete"), IsEmpty()) << "parts come one after the other";
  later(20s);
  EXPECT_THAT(told("checkpoint_incomplete"), ElementsAre("no step has been saved by all members yet"));
  says("ada", wire::AttemptPhase::running, 6);
  later(20s);
  EXPECT_THAT(told("checkpoint_incomplete"), SizeIs(1)) << "once";
  misses("bob holds something else");
  says("ada", wire::AttemptPhase::running, 7);
  later(20s);
  EXPECT_THAT(told("checkpoint_incomplete"), SizeIs(2));
  bulk.merges = []() -> Result<MergedParts> { return make_error(Code::no_space, "our disk is full"); };
  says("ada", wire::AttemptPhase::running, 8);
  EXPECT_THAT(told("checkpoint_fetch_failed"), ElementsAre(HasSubstr("our disk is full")));
}

TEST_F(GangOnHosts, OfEachMemberFourPartsAreKept) {
  runs();
  misses("not yet");
  for (std::uint64_t number = 1; number <= 6; ++number) says("ada", wire::AttemptPhase::running, number);
  for (const char* name : {"bob", "eve"}) says(name, wire::AttemptPhase::running, 1);
  ASSERT_THAT(bulk.parts, SizeIs(3));
  std::vector<std::uint64_t> numbers;
  for (const CheckpointPart& part : bulk.parts[0]) numbers.push_back(part.number);
  EXPECT_THAT(numbers, ElementsAre(3, 4, 5, 6));
}

TEST_F(GangOnHosts, PartsOfItsEndBecomeALastCheckpoint) {
  runs();
  merges_to(50, {3, 4, 5});
  const auto ended = [](wire::AttemptStatus& status) { status.end = wire::EndReason::exited, status.exit_code = 0; };
  for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
    says(name, wire::AttemptPhase::ended, static_cast<std::uint64_t>(number), ended);
  later(1s);
  EXPECT_EQ(state().visible(), job::JobState::succeeded);
  ASSERT_THAT(*registry.checkpoints({"gang"}), SizeIs(1));
  EXPECT_EQ(registry.checkpoints({"gang"})->front().root, tree(50));
}

}  // namespace
}  // namespace gridctl::control
