// SPDX-License-Identifier: Apache-2.0
// Attempts on ada and bob over lines by hand.
#pragma once

#include "control/follow/attempts.hpp"
#include "followed_jobs.hpp"
#include "scripted_freight.hpp"

namespace gridctl::control {

struct HandPacer : Pacer {
  void place_after(const TrackedJob& job, Duration delay) override { asked.emplace_back(job.id().value, delay); }
  sched::Interval interval_of(const TrackedJob&) override { return interval; }
  void retune(const TrackedJob&) override { ++retuned; }
  std::vector<std::pair<std::string, Duration>> asked;
  sched::Interval interval;
  int retuned = 0;
};

class OnHosts : public testing::FollowedJobs {
 protected:
  OnHosts() {
    for (const char* name : {"ada", "bob"}) add(name);
    tick();
    wire::PrepareReply prepared;
    prepared.boot_id = "boot";
    script.answers("prepare", wire::encode(prepared));
    script.answers("start", wire::encode(wire::StartReply{}));
    script.answers("stop");
    script.answers("clean");
    begin();
  }
  [[nodiscard]] World world() { return {clock, run, net, registry, bulk, folders}; }
  void begin() { attempts.emplace(world(), book, fleet(), pacer); }
  FleetListener& listener() { return *attempts; }
  void later(Duration time) {
    clock.pass(time);
    run.fire();
    attempts->tick(clock.boot());
    run.settle();
  }
  // It has been launched on ada.
  void launched(const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}) {
    submit("job", shape);
    place("job", "ada", 2, false);
    run.settle();
  }
  void runs(const std::function<void(job::Spec&)>& shape = [](job::Spec&) {}) {
    launched(shape);
    says(wire::AttemptPhase::running);
    ASSERT_NE(job("job").in<job::Running>(), nullptr) << job("job").state().reason_text;
    asked();
  }
  void says(wire::AttemptPhase phase, const std::function<void(wire::AttemptStatus&)>& change = [](auto&) {}) {
    wire::AttemptStatus status;
    status.job = {"job"};
    status.epoch = job("job").state().epoch;
    status.phase = phase;
    change(status);
    wire::PollReply reply;
    reply.attempts = {status};
    script.replies["poll"] = {wire::encode(reply)};  // as it would answer over another connection
    listener().polled(host("ada"), reply);
    run.settle();
  }
  // Its host is given up; over another connection it says that nothing is there.
  void lost() {
    wire::PollReply reply;
    wire::AttemptStatus status;
    status.job = {"job"};
    status.epoch = job("job").state().epoch;
    reply.attempts = {status};
    script.replies["poll"] = {wire::encode(reply)};
    book.apply({"job"}, job::HostLost{status.epoch, std::chrono::seconds{60}});
    run.settle();
    asked();
  }
  static auto saved(std::uint64_t number) {
    return [number](wire::AttemptStatus& status) {
      wire::HostCheckpoint one;
      one.number = number;
      one.root = testing::tree(static_cast<int>(number));
      one.how = "format";
      one.age_ms = 500;
      one.written_ms = 300;
      one.metrics = {{"step", 7}};
      status.checkpoints = {one};
    };
  }
  std::vector<std::string> asked() {
    std::vector<std::string> names = std::exchange(script.asked, {});
    std::erase(names, "health");
    return names;
  }
  std::vector<std::string> told(const std::string& kind) {
    std::vector<std::string> texts;
    for (const auto events = *registry.events({"job"}, 0, 0); const registry::EventRecord& event : events)
      if (event.kind == kind) texts.push_back(event.text);
    return texts;
  }

  testing::ScriptedFreight bulk;
  testing::Script& script = bulk.script;
  HandPacer pacer;
  std::optional<Attempts> attempts;
};

}  // namespace gridctl::control
