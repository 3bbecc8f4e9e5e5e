// SPDX-License-Identifier: Apache-2.0
#include "control/concerns/bag_more.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/bytes.hpp"
#include "control/concerns/bag_finally.hpp"

namespace gridctl::control {

namespace {
constexpr std::size_t k_worker_name_max = 63;

constexpr double k_hungry_worth_s = 2;  // of hungry work for each worker: then another one is made
constexpr std::size_t k_hungry_named = 20;

struct Richer {
  job::Resources resources;
  bool has_place = false;  // now
};

// Returns the resources of a worker of this level, capped at those of the largest host. nullopt: no host has more than
// the workers of the previous level.
std::optional<Richer> richer(const Controls& controls, const TrackedJob& leader, std::uint64_t level) {
  Question question = controls.placement.question(leader);
  question.spec = job::at_level(std::move(question.spec), level);
  const job::Resources before = job::at_level(leader.spec(), level - 1).resources;
  const job::Resources wanted = question.spec.resources;
  std::set<std::pair<std::uint64_t, std::uint64_t>, std::greater<>> sizes{{wanted.memory_bytes, wanted.disk_bytes}};
  for (const sched::HostFacts& host : question.hosts)
    sizes.emplace(std::clamp(host.inventory->memory_bytes, before.memory_bytes, wanted.memory_bytes),
                  std::clamp(host.inventory->disk_free_bytes, before.disk_bytes, wanted.disk_bytes));
  for (const auto& [memory, disk] : sizes) {
    if (memory <= before.memory_bytes && disk <= before.disk_bytes) continue;
    question.spec.resources.memory_bytes = memory;
    question.spec.resources.disk_bytes = disk;
    const sched::Decision decision = controls.placement.decide(leader, question);
    if (decision.could_ever_fit) return Richer{question.spec.resources, decision.placement.has_value()};
  }
  return std::nullopt;
}

// Describes a raise as "64 MiB of memory", or "1 GiB of memory or 10 GiB of disk".
std::string raise_in_words(const job::Raise& raise, const job::Resources& resources) {
  const std::string memory = raise.memory > 0 ? format_size(resources.memory_bytes) + " of memory" : "";
  const std::string disk = raise.disk > 0 ? format_size(resources.disk_bytes) + " of disk" : "";
  return memory + (memory.empty() || disk.empty() ? "" : " or ") + disk;
}

job::Spec with_more(job::Spec spec, std::uint64_t level, const job::Resources& resources) {
  spec = job::at_level(std::move(spec), level);
  spec.resources = resources;
  return spec;
}

// Counts workers that can run the hungry tasks, now or soon.
struct Able {
  std::uint64_t working = 0, all = 0;  // all: of any level
  bool on_its_way = false, waits = false;
  double slowest_s = 0;  // of one task
};

Able able(const Controls& controls, const std::set<std::string>& members, BagRun& run, std::uint64_t level) {
  Able found;
  for (const std::string& id : members) {
    const TrackedJob* job = std::as_const(controls.book).find({id});
    if (job != nullptr && job->in<job::Done>() != nullptr) continue;
    ++found.all;
    if (job == nullptr) found.on_its_way = true;  // it was made a moment ago
    if (job == nullptr || job->spec().tasks->raise.level < level) continue;
    if (job->in<job::Waiting>() != nullptr) found.waits = true;
    else if (job->in<job::Running>() == nullptr) found.on_its_way = true;
  }
  for (const auto& [worker, seat] : run.seats()) {
    const bag::Holder* holder = run.bag().find(worker);
    if (seat.ended || holder == nullptr || !holder->open || holder->is_shunned() || holder->level < level) continue;
    ++found.working;
    found.slowest_s = std::max(found.slowest_s, seat.pace.task_s);
  }
  return found;
}

}  // namespace

std::uint64_t room_for(const Controls& controls, const TrackedJob& leader, std::uint64_t most) {
  Question question = controls.placement.question(leader);
  question.spec.resources = job::at_level(leader.spec(), 0).resources;
  for (std::uint64_t count = 0; count < most; ++count) {
    const auto placed = controls.placement.decide(leader, question).placement;
    if (!placed) return count;
    const auto host = std::ranges::find(question.hosts, placed->host, &sched::HostFacts::name);
    if (host != question.hosts.end()) sched::take_away(*host, placed->gpu_uuids, placed->cpus, placed->memory_bytes);
  }
  return most;
}

void feed_hungry(const Controls& controls, TrackedJob& leader, std::set<std::string> members, BagRun& run, std::uint64_t most,
                 const std::function<void(job::Spec)>& make) {
  const bag::Bag& bag = run.bag();
  if (bag.hungry().empty() || leader.unsure) return;
  const auto& [level, tasks] = *bag.hungry().begin();
  const Able there = able(controls, members, run, level);
  if (there.on_its_way) return;
  if (there.working > 0 && static_cast<double>(tasks.count()) * there.slowest_s < k_hungry_worth_s * static_cast<double>(there.working)) return;
  const job::Raise& raise = leader.spec().tasks->raise;
  const std::optional<Richer> next = richer(controls, leader, level);
  const std::string ran_out = "tasks that ran out of " + raise_in_words(raise, job::at_level(leader.spec(), level - 1).resources) + " (" +
                              bag::to_text(tasks.list(), k_hungry_named) + ")";
  if (!next) {
    if (there.working > 0) return;
    controls.book.note(leader.id(),
                       {"no_host_has_more", ran_out + " failed: no host that can run them has more", {}, {}});
    return run.add(bag::Capped{level});
  }
  const std::string again = ran_out + " are retried with " + raise_in_words(raise, next->resources);
  if (next->has_place && !there.waits && there.all < most) {
    if (there.working == 0) controls.book.note(leader.id(), {"tried_with_more", again, {}, {}});
    return make(with_more(leader.spec(), level, next->resources));
  }
  const bool others_work = there.working > 0 || bag.progress().held > 0 || bag.waiting(level - 1) > 0;
  if (others_work || raise.level >= level) return;
  end_workers(controls, leader, std::move(members), again);
  const std::uint64_t mine = level;
  reshape(controls, leader, [&](job::Spec& spec) { spec = with_more(std::move(spec), mine, next->resources); });
  if (leader.spec().tasks->raise.level >= mine) controls.book.note(leader.id(), {"tried_with_more", again, {}, {}});
}

std::uint32_t worker_number(const TrackedJob& job) {
  return job.spec().twin_of.empty() ? 1 : registry::twin_number(job.id());
}

job::Spec worker_spec(const TrackedJob& leader, job::Spec spec, std::uint32_t number) {
  const std::string ending = "-w" + std::to_string(number);
  spec.name = spec.name.substr(0, k_worker_name_max - ending.size()) + ending;
  spec.twin_of = leader.id();
  spec.budget_total.reset();
  spec.max_duration.reset();
  spec.deadline.reset();
  return spec;
}

}  // namespace gridctl::control
