// SPDX-License-Identifier: Apache-2.0
// What runs on a simulated host beside the agent: the job's program, its first process, and the power.
#include <algorithm>
#include <csignal>

#include "host.hpp"
#include "supervision.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_rendezvous = k_s / 2;  // until a gang's program looks for the others again
constexpr Nanos k_writeback = 30 * k_s;  // what is younger and was not synced may go with the power
}

// A gang's program waits for the others, and hangs for ever when one of them has failed.
void Host::run_payload(const Key& key, Payload* payload, Nanos from) {
  init_[payload] = spawn();
  if (const Folder* mine = folder(key); mine != nullptr && mine->start->spec.bag) return run_tasks(key, payload);
  if (world_.jobs[static_cast<std::size_t>(payload->job)].spec.service) return serve_requests(key, payload);
  await_peers(key, payload, from);
}

// It answers when it has loaded, until somebody ends it; or it crashes.
void Host::serve_requests(const Key& key, Payload* payload) {
  const Options& o = world_.options;
  const bool hangs = !world_.healed && world_.rng.chance(o.server_hangs);
  payload->ready_at = hangs ? INT64_MAX : world_.now + o.load_time;
  if (world_.healed || !world_.rng.chance(o.server_crashes)) return;
  const std::size_t which = folder(key)->launches.size() - 1;
  world_.after(world_.rng.between(k_ms, 4 * k_min), world_.host_node(index_), [this, key, payload, which] {
    if (!payload->alive || folder(key) == nullptr) return;
    const bool fails = world_.rng.chance(0.5);
    agent::ExitRecord record{"run", fails ? 1 : 0, 0, 0, 0, false, false};
    payload_over(key, which, fails ? Why::failed : Why::finished, &record);
  });
}

void Host::await_peers(const Key& key, Payload* payload, Nanos from) {
  if (!payload->alive || folder(key) == nullptr) return;
  if (world_.truth->has_peers(*payload)) return work(key, payload, from);
  world_.after(k_rendezvous, world_.host_node(index_), [=, this] { await_peers(key, payload, from); });
}

// Saves every so often, ends when its work is done (or when its code has a bad day). Work counts while the host is
// awake, and stands still while the program saves.
void Host::work(const Key& key, Payload* payload, Nanos from) {
  const Options& o = world_.options;
  const Nanos began = node().awake(world_.now);
  Nanos end = std::max<Nanos>(o.work - from, 1);
  if (o.kills_itself > 0 && Random(o.seed * 43 + static_cast<std::uint64_t>(payload->job)).chance(o.kills_itself)) {
    const std::size_t launch = folder(key)->launches.size() - 1;
    world_.after(world_.rng.between(k_ms, std::max(o.save_every / 2, 2 * k_ms)), world_.host_node(index_), [this, key, payload, launch] {
      agent::ExitRecord record{"run", -1, SIGKILL, 0, 0, false, false};
      if (payload->alive) payload_over(key, launch, Why::killed, &record);
    });
  }
  const bool fails = world_.rng.chance(o.program_fails);
  if (o.chatter > 0) chat(key, payload), plan_stands(key, payload);
  if (fails) end = static_cast<Nanos>(world_.rng.below(static_cast<std::uint64_t>(end))) + 1;
  const std::size_t which = folder(key)->launches.size() - 1;
  auto step = std::make_shared<std::function<void(Nanos)>>();
  const std::weak_ptr<std::function<void(Nanos)>> weak = step;
  *step = [this, key, payload, from, began, end, fails, which, weak](Nanos save) {
    const Nanos done = std::min(save, end);  // work
    const Nanos every = world_.options.save_every, cost = world_.options.save_cost;
    const Nanos target = done + (done + every - 1) / every * cost;
    const Nanos left = target - (node().awake(world_.now) - began);
    const auto self = weak.lock();
    world_.after(std::max<Nanos>(left, 0), world_.host_node(index_), [=, this] {
      Folder* mine = folder(key);
      if (!payload->alive || mine == nullptr || world_.truth->has_lost_peer(*payload)) return;
      if (node().awake(world_.now) - began < target) return (*self)(save);
      if (world_.truth->stands(*payload)) return world_.after(k_s, world_.host_node(index_), [self, save] { (*self)(save); });
      if (done < end) {
        mine->saved = from + done;
        if (world_.options.chatter > 0) payload->signs.push_back(world_.now);
        say(*mine, "step " + std::to_string(from + done));
        return (*self)(save + every);
      }
      if (!fails) mine->saved = from + end;
      say(*mine, fails ? "it fails" : "done");
      agent::ExitRecord record{"run", fails ? 1 : 0, 0, 0, 0, false, false};
      payload_over(key, which, fails ? Why::failed : Why::finished, &record);
    });
  };
  (*step)(o.save_every);
}

// Each line says whose it is.
void Host::say(Folder& folder, const std::string& words) const {
  if (world_.options.words == 0) return;
  const wire::AttemptSpec& spec = folder.start->spec;
  folder.log += Truth::signature(spec.job, spec.attempt, spec.gang ? static_cast<int>(spec.gang->node_rank) : 0) + words + "\n";
  world_.truth->said(spec, folder.log);
}

void Host::payload_over(const Key& key, std::size_t launch, Why why, const agent::ExitRecord* record) {
  Folder* mine = folder(key);
  if (mine == nullptr || launch >= mine->launches.size() || !mine->launches[launch].init_lives) return;
  Launch& ended = mine->launches[launch];
  ended.init_lives = false;
  if (record != nullptr) ended.exit = *record;
  if (mine->start->spec.bag && record != nullptr && why == Why::ordered) stop_tasks(key);
  alive_.erase(static_cast<std::uint64_t>(init_[ended.payload].pid));
  world_.truth->payload_ends(*ended.payload, why);
  world_.after(k_ms, world_.host_node(index_), [this, key] {
    const auto found = supervisions_.find(key);
    if (found != supervisions_.end() && folder(key) != nullptr) found->second->payload_ended();
  });
}

// Whatever it is that kills there: an owner who wants his machine, a bad power supply.
void Host::strike(const Key& key, std::size_t launch) {
  if (!world_.options.deadly || index_ != world_.options.liar) return;
  world_.after(world_.rng.between(k_ms, world_.options.save_every / 2), world_.host_node(index_),
               [this, key, launch] { payload_over(key, launch, Why::killed, nullptr); });
}

// The job's first process looks at the deadline by itself, and ends the job when nobody else has.
void Host::arm_last_line(const Key& key, std::size_t launch) {
  const Folder* mine = folder(key);
  const Duration grace = mine->start->spec.stop_grace;
  const Nanos due = node().when(agent::last_line(BootTime{mine->deadline}, grace));
  world_.at(due, world_.host_node(index_), [this, key, launch, grace] {
    const Folder* now = folder(key);
    if (now == nullptr || launch >= now->launches.size() || !now->launches[launch].init_lives) return;
    if (clock() < agent::last_line(BootTime{now->deadline}, grace)) return arm_last_line(key, launch);
    const agent::ExitRecord record{"run", -1, 0, 0, 0, false, true};
    payload_over(key, launch, Why::lease_passed, &record);
  });
}

// Not a process: the eye of Truth on the lease.
void Host::watch_lease(const Key& key, Payload* payload, std::int64_t deadline) {
  const Duration grace = folder(key)->start->spec.stop_grace;
  const BootTime due = BootTime{deadline} + grace + std::chrono::seconds{31};
  world_.at(node().when(due), world_.host_node(index_), [this, key, payload, deadline, grace] {
    const Folder* mine = folder(key);
    if (!payload->alive || mine == nullptr || mine->deadline != deadline) return;
    if (world_.now - node().woke_at > 3 * k_s || node().woke_at == 0)
      return world_.truth->outlives(*payload, clock(), BootTime{deadline}, grace);
    world_.after(5 * k_s, world_.host_node(index_), [this, payload, deadline, grace] {
      world_.truth->outlives(*payload, clock(), BootTime{deadline}, grace);
    });
  });
}

void Host::lose_power() {
  Node& mine = node();
  if (!mine.up) return;
  world_.wake(world_.host_node(index_));
  mine.up = false;
  ++mine.life;
  alive_.clear();
  supervisions_.clear();
  // Numbers of processes come again, and others have them.
  constexpr std::uint64_t k_others = 60;
  for (std::uint64_t pid = 1; pid <= k_others; ++pid) alive_.insert(pid);
  next_pid_ = k_others + 1;
  Random& random = world_.rng;
  for (auto& [key, one] : folders_) {
    one.supervisor = 0;
    for (Launch& launch : one.launches) {
      if (launch.init_lives) world_.truth->payload_ends(*launch.payload, Why::power);
      launch.init_lives = false;
    }
    if (one.start->spec.bag && random.chance(0.5)) lose_task_files(one.bag);
    const bool ended = one.status && one.status->phase == wire::AttemptPhase::ended;
    if (!ended && random.chance(0.3)) one.status.reset();
    if (!ended && world_.now - one.accepted_at < k_writeback && random.chance(0.5))
      one.emptied = true, one.status.reset(), one.log.clear();
    for (Snapshot& snapshot : one.snapshots)
      if (clock() - snapshot.taken_at < Duration{k_writeback} && random.chance(0.5)) snapshot.damaged = true;
  }
}

void Host::power_up() {
  Node& mine = node();
  if (mine.up) return;
  mine.up = true;
  ++mine.life;
  ++mine.boots;
  mine.booted_at = world_.now;
  mine.boot_base = 20 * k_s;
  mine.woke_at = 0;
}

void Host::kill_supervisor(int which) {
  int at = 0;
  for (auto& [key, one] : folders_) {
    if (one.supervisor == 0 || at++ != which) continue;
    alive_.erase(one.supervisor);
    one.supervisor = 0;
    if (!one.launches.empty() && one.launches.back().payload != nullptr) one.launches.back().payload->loses_supervisor(world_.now);
    supervisions_.erase(key);
    return;
  }
}

void Host::kill_payload(int which) {
  int at = 0;
  for (auto& [key, one] : folders_)
    if (!one.launches.empty() && one.launches.back().init_lives && at++ == which)
      return payload_over(key, one.launches.size() - 1, Why::killed, nullptr);
}

}  // namespace gridctl::sim
