// SPDX-License-Identifier: Apache-2.0
#include "host.hpp"

#include <algorithm>
#include <csignal>

#include "agent/core.hpp"
#include "supervision.hpp"
#include "user.hpp"
#include "view.hpp"

namespace gridctl::sim {

namespace {
constexpr double k_cpus = 8;
constexpr Nanos k_kill_slack = 10 * k_s;  // beyond the grace
constexpr Nanos k_waking = 3 * k_s;       // until what a sleeping host should have ended has been ended
}  // namespace

Host::Host(World& world, int index) : world_(world), index_(index) {}
Host::~Host() = default;

std::string Host::boot_id() const {
  return "boot-" + std::to_string(index_) + "-" + std::to_string(world_.node(world_.host_node(index_)).boots);
}

Inventory Host::inventory() const {
  Inventory out;
  out.machine_id = "machine" + std::to_string(index_);
  out.boot_id = boot_id();
  out.cpus = k_cpus;
  out.memory_bytes = 64ull << 30;
  out.disk_free_bytes = 1ull << 40;
  out.engines.push_back({EngineKind::process, "1", false, true, ""});
  if (world_.options.images > 0) out.engines.push_back({EngineKind::docker, "27", false, true, ""});
  for (int i = 0; i < world_.options.gpus_per_host; ++i) {
    Gpu gpu;
    gpu.name = "NVIDIA A100-SXM4-80GB";
    gpu.uuid = "GPU-" + std::to_string(index_) + "-" + std::to_string(i);
    gpu.memory_bytes = 80ull << 30;
    out.gpus.push_back(gpu);
  }
  return out;
}

bool Host::node_is_up() const {
  const Node& mine = world_.node(world_.host_node(index_));
  return mine.up && !mine.asleep && !disk_full;
}

Host::Hello Host::greet(int laptop) {
  View(*this, laptop).adopt_all();
  return {clock(), boot_id(), {node().life, agents_}, peer_key()};
}

Digest Host::peer_key() const {
  Digest key;
  key.bytes[0] = static_cast<std::byte>(index_ + 1);
  key.bytes[1] = static_cast<std::byte>(installs_);
  return key;
}

bool Host::serves(const Connection& connection) const {
  const Node& mine = world_.node(world_.host_node(index_));
  return mine.up && connection.life == mine.life && connection.agents == agents_;
}

Result<control::Answer> Host::serve(int laptop, const control::Request& ask) {
  View view(*this, laptop);
  agent::Core core(view);
  faulted_ = false;
  if (const auto* request = std::get_if<wire::PrepareRequest>(&ask)) {
    TRY_ASSIGN(auto reply, core.prepare(*request));
    return control::Answer{reply};
  }
  if (const auto* request = std::get_if<wire::StartRequest>(&ask)) {
    if (index_ == world_.options.liar && world_.rng.chance(world_.options.lie_start))
      return make_error(Code::refused, "not today");
    auto reply = core.start(*request);
    if (!reply) check_refusal(laptop, request->spec, reply.error().code);
    else world_.truth->accepts(index_, laptop, *request);
    if (reply && !reply->already) check_leased(laptop, *request);
    TRY_ASSIGN(auto good, std::move(reply));
    return control::Answer{good};
  }
  if (const auto* request = std::get_if<wire::StopRequest>(&ask)) {
    TRY(core.stop(*request));
    check_stopped(laptop, request->job, request->epoch);
    if (folder({laptop, request->job.value, request->epoch.value}) == nullptr)
      world_.truth->promised_never(index_, laptop, request->job, request->epoch, "stop");
    return control::Answer{control::Ack{}};
  }
  if (const auto* request = std::get_if<wire::CleanRequest>(&ask)) {
    const auto there = folders_;
    TRY(core.clean(*request));
    check_work_kept(there, request->keep_work);
    return control::Answer{control::Ack{}};
  }
  const auto& request = std::get<wire::PollRequest>(ask);
  std::map<Key, std::int64_t> before;
  std::map<Key, agent::HostLimits> limits;
  for (const auto& [key, folder] : folders_) before[key] = folder.deadline, limits[key] = folder.limits;
  TRY_ASSIGN(auto reply, core.poll(request));
  check_leases(before, request.echo + request.lease);
  check_allowances(laptop, request, limits);
  for (const wire::AttemptStatus& status : reply.attempts) {
    if (status.phase == wire::AttemptPhase::absent)
      world_.truth->promised_never(index_, laptop, status.job, status.epoch, "poll");
    // A new boot is proof of death, and nothing may go on by the clock of an earlier one.
    const Folder* mine = folder({laptop, status.job.value, status.epoch.value});
    const bool as_alive = status.end == wire::EndReason::none || status.phase == wire::AttemptPhase::running;
    if (mine != nullptr && mine->boot != boot_id() && as_alive)
      throw Violation("S5", status.job.value + " epoch " + std::to_string(status.epoch.value) + " on host" +
                                std::to_string(index_) + " is told as alive after a reboot");
  }
  for (const auto& want : request.attempts) {
    Folder* mine = folder({laptop, want.job.value, want.epoch.value});
    const BootTime until = request.echo + request.lease;
    const bool kept = request.echo.ns > 0 && request.echo <= clock() && until > clock() && !disk_full && !faulted_;
    if (mine == nullptr || mine->launches.empty() || mine->emptied || !kept || clock().ns >= mine->deadline) continue;
    world_.truth->lease_extends(mine->launches.back().payload, until);
  }
  control::Answer answer{std::move(reply)};
  if (index_ == world_.options.liar && world_.options.lie_start < 1 && !world_.options.deadly) lie(answer);
  return answer;
}

void Host::check_refusal(int laptop, const wire::AttemptSpec& spec, Code code) {
  const Key key{laptop, spec.job.value, spec.epoch.value};
  if (code == Code::refused || code == Code::busy)
    world_.truth->promised_never(index_, laptop, spec.job, spec.epoch, "start");
  if (code == Code::busy) check_stopped(laptop, spec.job, Epoch{spec.epoch.value - 1});
  for (const auto& slot : ledger_)
    if (slot && folder(key) == nullptr && !unreleased_.contains(key) && slot->controller.value == "laptop" + std::to_string(laptop) &&
        slot->job == spec.job && slot->epoch == spec.epoch && slot->boot_id == boot_id())
      throw Violation("S8",
                      spec.job.value + " was refused by host" + std::to_string(index_) + " and keeps a lease there");
}

// What may still run of a job up to an epoch has been told to end.
void Host::check_stopped(int laptop, const JobId& job, Epoch epoch) {
  View view(*this, laptop);
  for (auto& [key, one] : folders_) {
    if (std::get<0>(key) != laptop || std::get<1>(key) != job.value || std::get<2>(key) > epoch.value) continue;
    const auto stored = view.stored({job, Epoch{std::get<2>(key)}});
    if (!stored || !*stored || (*stored)->ended() || (*stored)->boot_id != boot_id() || one.stop) continue;
    throw Violation("S8", job.value + " epoch " + std::to_string(std::get<2>(key)) + " on host" +
                              std::to_string(index_) + " is spared by an order to stop");
  }
}

// Outputs that could not be fetched stay: they were told to be there still.
void Host::check_work_kept(const std::map<Key, Folder>& before, Duration how_long) const {
  if (how_long <= Duration{}) return;
  ++world_.truth->rules_met["K5"];
  for (const auto& [key, one] : before)
    if (!folders_.contains(key) && !kept_work_.contains(key))
      throw Violation("K5", "the files of " + std::get<1>(key) + " epoch " + std::to_string(std::get<2>(key)) + " on host" +
                                std::to_string(index_) + " were to be kept, and are removed");
}

// A supervisor that lives kills what ignores the order when its grace is over.
void Host::watch_stop(const Key& key, Nanos grace, std::uint64_t supervisor) {
  world_.after(grace + k_kill_slack, world_.host_node(index_), [this, key, supervisor] {
    const Folder* mine = folder(key);
    if (mine == nullptr || mine->supervisor != supervisor || mine->launches.empty()) return;
    if (node().woke_at > 0 && world_.now - node().woke_at < k_kill_slack) return watch_stop(key, 0, supervisor);
    if (mine->launches.back().init_lives)
      throw Violation("L2", std::get<1>(key) + " epoch " + std::to_string(std::get<2>(key)) + " on host" +
                                std::to_string(index_) + " runs on long after it was told to stop");
  });
}

// Whoever waits for a lease to end counts from the time that was echoed, and on that what is over stays so.
void Host::check_leases(const std::map<Key, std::int64_t>& before, BootTime given) {
  for (const auto& [key, folder] : folders_) {
    const std::int64_t old = before.at(key);
    const std::string which =
        std::get<1>(key) + " epoch " + std::to_string(std::get<2>(key)) + " on host" + std::to_string(index_);
    if (folder.deadline > std::max(old, given.ns)) throw Violation("S5", which + " has a longer lease than was given");
    if (folder.deadline < old) throw Violation("L3", which + " has lost a part of its lease");
    if (folder.deadline > old && old <= clock().ns) throw Violation("S5", which + " has its lease revived");
  }
}

// What a host may say that means ill, or has a bad memory.
void Host::lie(control::Answer& answer) {
  auto& reply = std::get<wire::PollReply>(answer);
  Random& random = world_.rng;
  for (wire::AttemptStatus& status : reply.attempts) {
    switch (random.below(12)) {
      case 0: status.epoch.value += 1; break;
      case 1: status.epoch.value -= 1; break;
      case 2: status.max_epoch = Epoch{INT64_MAX}; break;
      case 3: status.checkpoints.push_back({random.below(1000), Digest{}, 1, 1, 0, "quiet"}); break;
      case 4: status.phase = static_cast<wire::AttemptPhase>(random.below(5)); break;
      case 5: status.end = wire::EndReason::exited; break;
      default: break;
    }
  }
  if (random.chance(0.05)) reply.host_time = BootTime{INT64_MAX / 2};
}

Result<std::string> Host::read_log(int laptop, const wire::LogRequest& wanted) {
  const Folder* mine = folder({laptop, wanted.job.value, wanted.epoch.value});
  if (mine == nullptr) return make_error(Code::not_found, "no such attempt");
  const std::size_t from = std::min<std::size_t>(wanted.offset, mine->log.size());
  return mine->log.substr(from, wanted.max_bytes);
}

Result<wire::ResultsReply> Host::results(int laptop, const wire::ResultsRequest& wanted) {
  const Key key{laptop, wanted.job.value, wanted.epoch.value};
  const Folder* mine = folder(key);
  if (mine == nullptr || mine->launches.empty()) return make_error(Code::not_found, "no such attempt");
  wire::ResultsReply reply;
  if (!mine->saved) return reply;
  reply.files = 1;
  reply.bytes = 100;
  reply.names = {"out"};
  if (wanted.tree)
    reply.root = world_.truth->make_content(
        {world_.truth->index(wanted.job), *mine->saved, wanted.epoch, index_, 0, 1, true, !mine->launches.back().init_lives});
  return reply;
}

Result<Digest> Host::read_snapshot(int laptop, const wire::CheckpointRef& wanted) {
  Folder* mine = folder({laptop, wanted.job.value, wanted.epoch.value});
  if (mine != nullptr)
    for (const Snapshot& snapshot : mine->snapshots)
      if (snapshot.checkpoint.number == wanted.number) {
        if (!snapshot.damaged && index_ != world_.options.liar) return snapshot.checkpoint.root;
        Digest other;  // of bytes that are not what was said; a liar may have said that it is all zeros
        other.bytes.fill(std::byte{0xFF});
        return other;
      }
  return make_error(Code::not_found, "this host has no such snapshot");
}

std::optional<Digest> Host::newest_snapshot(int laptop, const JobId& job, Epoch epoch) const {
  const auto found = folders_.find({laptop, job.value, epoch.value});
  if (found == folders_.end() || !found->second.status || found->second.snapshots.empty()) return std::nullopt;
  // It tells what stands in its status, which a full disk may have kept from being written.
  const std::vector<wire::HostCheckpoint>& told = found->second.status->checkpoints;
  const Snapshot& newest = found->second.snapshots.back();
  if (newest.damaged || told.empty() || told.back().number != newest.checkpoint.number) return std::nullopt;
  return newest.checkpoint.root;
}

Folder* Host::folder(const Key& key) {
  const auto found = folders_.find(key);
  return found == folders_.end() ? nullptr : &found->second;
}

agent::Machine Host::machine() const {
  return {boot_id(), 1, [this](const os::ProcessId& process) {
            return process.pid > 0 && alive_.contains(static_cast<std::uint64_t>(process.pid));
          }};
}

Result<void> Host::take(const agent::Lease& lease) {
  const Result<agent::Entry> planned = agent::plan_take(ledger_, lease, {k_cpus, 64ull << 30}, machine(), clock());
  if (!planned) return check_busy(lease), planned.error();
  const agent::Entry entry = *planned;
  check_unused(lease);
  if (entry.slot >= ledger_.size()) ledger_.resize(entry.slot + 1);
  ledger_[entry.slot] = lease;
  for (const std::size_t slot : entry.replaces)
    if (slot != entry.slot) ledger_[slot].reset();
  return {};
}

// A GPU that another program computes on is not to be had, whoever of its keepers has died.
void Host::check_unused(const agent::Lease& lease) const {
  const Node& mine = world_.node(world_.host_node(index_));
  if (mine.woke_at > 0 && world_.now - mine.woke_at < k_waking) return;
  for (const auto& [key, one] : folders_) {
    if (one.launches.empty() || !one.launches.back().init_lives ||
        lease_of(std::get<0>(key), *one.start).same_attempt(lease))
      continue;
    for (const std::string& gpu : one.start->spec.gpu_uuids)
      if (std::find(lease.gpus.begin(), lease.gpus.end(), gpu) != lease.gpus.end())
        throw Violation("S1", gpu + " of host" + std::to_string(index_) + " is leased to " + lease.job.value +
                                  " while " + std::get<1>(key) + " computes on it");
  }
}

// What an earlier boot has left holds nothing, whatever its processes were called.
void Host::check_busy(const agent::Lease& lease) const {
  ++world_.truth->rules_met["S9"];
  for (const auto& slot : ledger_)
    if (slot && slot->boot_id == boot_id() && !slot->same_attempt(lease)) return;
  throw Violation("S9", "host" + std::to_string(index_) + " has no room for " + lease.job.value + ", and nobody has a lease there");
}

// An attempt that was accepted holds what it was given, also until its supervisor has begun.
void Host::check_leased(int laptop, const wire::StartRequest& request) const {
  if (index_ == world_.options.liar) return;
  ++world_.truth->rules_met["S9"];
  const agent::Lease wanted = lease_of(laptop, request);
  for (const auto& slot : ledger_)
    if (slot && slot->same_attempt(wanted) && slot->gpus == wanted.gpus) return;
  throw Violation("S9", request.spec.job.value + " epoch " + std::to_string(request.spec.epoch.value) + " is accepted by host" +
                            std::to_string(index_) + ", and holds nothing there");
}

// What is left to an attempt counts from the moment of which its controller knew.
void Host::check_allowances(int laptop, const wire::PollRequest& request, const std::map<Key, agent::HostLimits>& before) const {
  for (const auto& want : request.attempts) {
    const Key key{laptop, want.job.value, want.epoch.value};
    const auto now = folders_.find(key);
    const auto old = before.find(key);
    if (!want.allowance || now == folders_.end() || old == before.end() || now->second.limits == old->second) continue;
    ++world_.truth->rules_met["V4"];
    const auto differs = [&](const std::optional<BootTime>& at, const std::optional<Duration>& left) {
      return at.has_value() != left.has_value() || (at && std::abs(at->ns - (request.echo + *left).ns) > k_ms);
    };
    const agent::HostLimits& limits = now->second.limits;
    if (differs(limits.run_until, want.allowance->run) || differs(limits.time_until, want.allowance->time))
      throw Violation("V4", want.job.value + " epoch " + std::to_string(want.epoch.value) + " on host" + std::to_string(index_) +
                                " may run until another moment than it was told");
  }
}

void Host::stand_by(int laptop, const wire::StandbyRequest& request) {
  const std::pair key{laptop, request.job.value};
  if (request.root) standbys_[key] = {*request.root, world_.now, world_.laptops[static_cast<std::size_t>(laptop)]->deaths()};
  else standbys_.erase(key);
}

std::vector<Nanos> Host::told_steps(int laptop, const JobId& job, Epoch epoch) const {
  std::vector<Nanos> steps;
  const auto found = folders_.find({laptop, job.value, epoch.value});
  if (found == folders_.end() || !found->second.status) return steps;
  for (const wire::HostCheckpoint& told : found->second.status->checkpoints)
    for (const Snapshot& one : found->second.snapshots)
      if (one.checkpoint.number == told.number && !one.damaged && !told.as_left)
        steps.push_back(world_.truth->content(one.checkpoint.root)->step);
  return steps;
}

std::optional<Duration> Host::lease_left(int laptop, const JobId& job, Epoch epoch) const {
  const auto found = folders_.find({laptop, job.value, epoch.value});
  if (found == folders_.end() || found->second.launches.empty() || !found->second.launches.back().init_lives) return std::nullopt;
  const BootTime now = world_.node(world_.host_node(index_)).boot(world_.now);
  return BootTime{found->second.deadline} - now;
}

void Host::release(const Key& key) {
  for (auto& slot : ledger_)
    if (slot && slot->controller.value == "laptop" + std::to_string(std::get<0>(key)) &&
        slot->job.value == std::get<1>(key) && slot->epoch.value == std::get<2>(key))
      slot.reset();
}

agent::Lease Host::lease_of(int laptop, const wire::StartRequest& start) const {
  agent::Lease lease;
  lease.controller = {"laptop" + std::to_string(laptop)};
  lease.job = start.spec.job;
  lease.epoch = start.spec.epoch;
  lease.boot_id = boot_id();
  lease.pid_namespace = 1;
  lease.deadline = start.echo + start.lease;
  lease.grace = start.spec.stop_grace;
  lease.cpus = start.spec.cpus;
  lease.gpus = start.spec.gpu_uuids;
  return lease;
}

os::ProcessId Host::spawn() {
  alive_.insert(next_pid_);
  return {static_cast<int>(next_pid_++), 1};
}

void Host::spawn_supervisor(const Key& key) {
  const auto pid = static_cast<std::uint64_t>(spawn().pid);
  supervisions_[key] = std::make_unique<Supervision>(*this, key, pid);
  folders_[key].supervisor = pid;
  world_.after(world_.rng.between(k_ms, 500 * k_ms), world_.host_node(index_), [this, key, pid] {
    const auto found = supervisions_.find(key);
    if (found != supervisions_.end() && found->second->pid() == pid && folder(key) != nullptr) found->second->begin();
  });
}

void Host::changed(const Key& key) {
  // By way of the kernel's notification, not from inside the writer.
  world_.after(k_ms, world_.host_node(index_), [this, key] {
    const auto found = supervisions_.find(key);
    if (found != supervisions_.end() && folder(key) != nullptr) found->second->control_changed();
  });
  Folder* mine = folder(key);
  if (mine != nullptr && !mine->launches.empty() && mine->launches.back().init_lives)
    watch_lease(key, mine->launches.back().payload, mine->deadline);
}

std::vector<agent::Lease> Host::leases_of(int laptop) const {
  std::vector<agent::Lease> found;
  const BootTime now{world_.node(world_.host_node(index_)).boot(world_.now)};
  for (const auto& lease : ledger_)
    if (lease && lease->controller.value == "laptop" + std::to_string(laptop) && !agent::is_void(*lease, machine(), now))
      found.push_back(*lease);
  return found;
}

void Host::check_empty() const {
  if (index_ == world_.options.liar) return;
  if (!folders_.empty())
    throw Violation("L5", "host" + std::to_string(index_) + " still has a folder of " +
                              std::get<1>(folders_.begin()->first) + " epoch " +
                              std::to_string(std::get<2>(folders_.begin()->first)));
  for (const auto& lease : ledger_)
    if (lease && !agent::is_void(*lease, machine(), BootTime{world_.node(world_.host_node(index_)).boot(world_.now)}))
      throw Violation("L5", "host" + std::to_string(index_) + " still has a lease of " + lease->job.value);
}

}  // namespace gridctl::sim
