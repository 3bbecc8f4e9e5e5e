// SPDX-License-Identifier: Apache-2.0
// A host that is values: what changes on it is listed, and one change may fail.
#pragma once

#include <map>
#include <set>

#include "agent/core.hpp"
#include "support/fault_points.hpp"

namespace gridctl::agent {

inline constexpr BootTime at(std::int64_t seconds) { return {seconds * 1'000'000'000}; }

struct ValueAttempt {
  StoredStatus stored;
  OpId op;
  Duration grace = std::chrono::seconds{10};
  std::optional<std::int64_t> stop, deadline, kept_from;
  std::optional<wire::Tempo> tempo;
  std::optional<HostLimits> limits;
  bool settles = false, begun = false;
};

class ValueHost : public HostState {
 public:
  BootTime time = at(1000);
  std::map<std::string, std::map<std::uint64_t, ValueAttempt>> all;
  std::map<std::string, Epoch> fences;
  std::set<std::uint64_t> leases, kept_work;  // epochs
  std::vector<std::string> done;              // what changed, in order
  // This effect fails, or happens and is told as failed; counted from 1.
  int strike = 0, effects = 0;
  gridctl::testing::Fate fate = gridctl::testing::Fate::fails;
  std::optional<Error> refuses_check, refuses_lease, refuses_create, refuses_begin, refuses_deadline;

  ValueAttempt* find(const AttemptKey& key) {
    const auto job = all.find(key.job.value);
    if (job == all.end()) return nullptr;
    const auto one = job->second.find(key.epoch.value);
    return one == job->second.end() ? nullptr : &one->second;
  }
  ValueAttempt& add(std::uint64_t epoch, wire::AttemptPhase phase = wire::AttemptPhase::running, const std::string& boot = "boot") {
    ValueAttempt& one = all["j"][epoch];
    one.stored.boot_id = boot;
    one.stored.status.job = {"j"};
    one.stored.status.epoch = Epoch{epoch};
    one.stored.status.phase = phase;
    if (fences["j"] < Epoch{epoch}) fences["j"] = Epoch{epoch};
    return one;
  }

  BootTime now() override { return time; }
  std::string boot_id() override { return "boot"; }
  wire::PollReply blank_reply() override { return {time, "boot", {}, 0, 0, {}}; }
  std::vector<JobId> jobs() override {
    std::vector<JobId> ids;
    for (const auto& [id, attempts] : all) ids.push_back({id});
    return ids;
  }
  Result<Lock> lock(const JobId&) override { return Lock(std::make_shared<int>(0)); }
  Result<Epoch> fence(const JobId& job) override { return fences[job.value]; }
  Result<void> set_fence(const JobId& job, Epoch epoch) override {
    return effect("fence", epoch, [&] { fences[job.value] = epoch; });
  }
  Result<std::vector<Epoch>> epochs(const JobId& job) override {
    std::vector<Epoch> found;
    for (const auto& [epoch, one] : all[job.value]) found.push_back(Epoch{epoch});
    return found;
  }
  Result<std::optional<StoredStatus>> stored(const AttemptKey& key) override {
    ValueAttempt* one = find(key);
    return one ? std::optional(one->stored) : std::nullopt;
  }
  Result<std::optional<wire::AttemptStatus>> status(const AttemptKey& key) override {
    ValueAttempt* one = find(key);
    return one ? std::optional(one->stored.status) : std::nullopt;
  }
  std::optional<OpId> accepted_by(const AttemptKey& key) override {
    ValueAttempt* one = find(key);
    return one ? std::optional(one->op) : std::nullopt;
  }
  bool exists(const AttemptKey& key) override { return find(key) != nullptr; }
  Result<Duration> stop_grace(const AttemptKey& key) override { return find(key)->grace; }
  Result<std::optional<std::int64_t>> stop_order(const AttemptKey& key) override { return find(key)->stop; }
  Result<void> order_stop(const AttemptKey& key, std::int64_t grace_ns) override {
    return effect("stop", key.epoch, [&] { find(key)->stop = grace_ns; });
  }
  Result<std::optional<std::int64_t>> deadline(const AttemptKey& key) override { return find(key)->deadline; }
  Result<void> set_deadline(const AttemptKey& key, BootTime deadline) override {
    if (refuses_deadline) return *refuses_deadline;
    return effect("deadline", key.epoch, [&] { find(key)->deadline = deadline.ns; });
  }
  Result<std::optional<std::int64_t>> kept_from(const AttemptKey& key) override { return find(key)->kept_from; }
  Result<void> set_kept_from(const AttemptKey& key, std::uint64_t number) override {
    return effect("kept", key.epoch, [&] { find(key)->kept_from = static_cast<std::int64_t>(number); });
  }
  Result<void> set_tempo(const AttemptKey& key, const wire::Tempo& tempo) override {
    return quietly([&] { find(key)->tempo = tempo; });
  }
  Result<void> set_limits(const AttemptKey& key, const HostLimits& limits) override {
    return quietly([&] { find(key)->limits = limits; });
  }
  Result<void> check(const wire::StartRequest&) override { return outcome(refuses_check); }
  Result<void> take_lease(const wire::StartRequest& request) override {
    if (refuses_lease) return *refuses_lease;
    return effect("lease", request.spec.epoch, [&] { leases.insert(request.spec.epoch.value); });
  }
  Result<void> release_lease(const AttemptKey& key) override {
    return effect("release", key.epoch, [&] { leases.erase(key.epoch.value); });
  }
  Result<void> create(const wire::StartRequest& request) override {
    if (refuses_create) return *refuses_create;
    return effect("create", request.spec.epoch,
                  [&] { add(request.spec.epoch.value, wire::AttemptPhase::starting).op = request.op; });
  }
  Result<void> begin(const wire::StartRequest& request) override {
    if (refuses_begin) return *refuses_begin;
    return effect("begin", request.spec.epoch, [&] { find({request.spec.job, request.spec.epoch})->begun = true; });
  }
  void adopt(const AttemptKey& key) override { note("adopt", key.epoch); }
  bool await_settled(const AttemptKey& key) override { return find(key)->settles; }
  Result<void> keep_work(const AttemptKey& key, Duration) override {
    return effect("keep", key.epoch, [&] { kept_work.insert(key.epoch.value); });
  }
  Result<void> remove(const AttemptKey& key) override {
    return effect("remove", key.epoch, [&] { all[key.job.value].erase(key.epoch.value); });
  }

 private:
  static Result<void> outcome(const std::optional<Error>& error) {
    if (error) return *error;
    return {};
  }
  template <class Change>
  Result<void> effect(const std::string& what, Epoch epoch, Change change) {
    note(what, epoch);
    return quietly(std::move(change));
  }
  template <class Change>
  Result<void> quietly(Change change) {
    const bool struck = ++effects == strike;
    if (struck && fate == gridctl::testing::Fate::fails) return make_error(Code::io, "the disk fails");
    change();
    if (struck) return make_error(Code::io, "the disk fails at the end");
    return {};
  }
  void note(const std::string& what, Epoch epoch) { done.push_back(what + " " + std::to_string(epoch.value)); }
};

}  // namespace gridctl::agent
