// SPDX-License-Identifier: Apache-2.0
// A gang on three hosts over lines by hand.
#pragma once

#include "control/follow/attempts.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"
#include "support/forwarded_records.hpp"

namespace gridctl::control {

struct IdlePacer : Pacer {
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
      proof.rtt = std::chrono::milliseconds{1};
      proof.rate_there = from == "bob" ? 2e9 : 1e10;
      return proof;
    };
  }
  [[nodiscard]] World world() { return {clock, run, net, records, bulk, folders}; }
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
      one.root = testing::tree(static_cast<int>(saved));
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
      merged.root = testing::tree(root);
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
  // Well, each with a part of its own.
  void all_end() {
    const auto ended = [](wire::AttemptStatus& status) { status.end = wire::EndReason::exited, status.exit_code = 0; };
    for (const auto& [name, number] : {std::pair{"ada", 3}, {"bob", 4}, {"eve", 5}})
      says(name, wire::AttemptPhase::ended, static_cast<std::uint64_t>(number), ended);
  }

  gridctl::testing::FailingRecords records{registry};
  testing::ScriptedFreight bulk;
  testing::Script& script = bulk.script;
  IdlePacer pacer;
  Attempts attempts{world(), book, fleet(), pacer};
  std::vector<std::string> proven;
  std::set<std::uint16_t> ports;
};

}  // namespace gridctl::control
