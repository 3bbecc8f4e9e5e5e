// SPDX-License-Identifier: Apache-2.0
#include "view.hpp"

#include <algorithm>
#include <utility>

#include "agent/ledger.hpp"
#include "bag_truth.hpp"
#include "supervision.hpp"

namespace gridctl::sim {

using agent::AttemptKey;

// `late`: the answer to the request goes out later, and what else is asked meanwhile finds the change made.
Result<void> View::meet(Point point, const JobId& job) {
  fate_ = host_.world_.pass(host_.world_.host_node(host_.index_), job.value, point);
  host_.faulted_ = host_.faulted_ || fate_ != Fate::well;
  if (fate_ == Fate::fails) return make_error(Code::io, "the disk fails");
  if (fate_ == Fate::late) host_.answer_later(host_.world_.points.delay());
  return {};
}

Result<void> View::change(Point point, const JobId& job, bool needs_space) {
  if (host_.world_.kill_here()) throw Killed{};
  TRY(meet(point, job));
  const double rate = host_.world_.options.full_rate;
  if (needs_space && host_.disk_full && (rate >= 1 || host_.world_.rng.chance(rate)))
    return make_error(Code::no_space, "the disk is full");
  return {};
}

Result<void> View::changed() {
  if (host_.world_.kill_here()) throw Killed{};
  if (std::exchange(fate_, Fate::well) == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  return {};
}

wire::PollReply View::blank_reply() {
  wire::PollReply reply;
  reply.host_time = host_.clock();
  reply.boot_id = host_.boot_id();
  std::vector<agent::Lease> leases;
  for (const auto& lease : host_.ledger_)
    if (lease && !agent::is_void(*lease, host_.machine(), host_.clock())) leases.push_back(*lease);
  reply.held = agent::shares_of(leases, {"laptop" + std::to_string(laptop_)});
  return reply;
}

std::vector<JobId> View::jobs() {
  std::vector<JobId> found;
  for (const auto& [key, folder] : host_.folders_)
    if (std::get<0>(key) == laptop_ && (found.empty() || found.back().value != std::get<1>(key)))
      found.push_back({std::get<1>(key)});
  return found;
}

Result<Epoch> View::fence(const JobId& job) {
  const auto found = host_.fences_.find({laptop_, job.value});
  return Epoch{found == host_.fences_.end() ? 0 : found->second};
}

Result<void> View::set_fence(const JobId& job, Epoch epoch) {
  TRY(change(Point::host_set_fence, job, true));
  host_.fences_[{laptop_, job.value}] = epoch.value;
  TRY(changed());
  return {};
}

Result<std::vector<Epoch>> View::epochs(const JobId& job) {
  std::vector<Epoch> found;
  for (auto at = host_.folders_.lower_bound({laptop_, job.value, 0});
       at != host_.folders_.end() && std::get<0>(at->first) == laptop_ && std::get<1>(at->first) == job.value; ++at)
    found.push_back(Epoch{std::get<2>(at->first)});
  return found;
}

Result<std::optional<agent::StoredStatus>> View::stored(const AttemptKey& key) {
  const Folder* folder = find(key);
  if (folder == nullptr) return std::optional<agent::StoredStatus>{};
  agent::StoredStatus out;
  if (folder->status) {
    out.status = *folder->status;
    wire::make_older(out.status, (host_.world_.now - folder->status_at) / k_ms);
    out.boot_id = folder->status_boot;
  } else {
    out.status.job = key.job;
    out.status.epoch = key.epoch;
    out.status.phase = wire::AttemptPhase::starting;
    out.boot_id = folder->emptied ? "" : folder->boot;
    out.status.log_bytes = folder->log.size();
  }
  return std::optional{std::move(out)};
}

Result<std::optional<wire::AttemptStatus>> View::status(const AttemptKey& key) {
  TRY_ASSIGN(auto found, stored(key));
  if (!found) return std::optional<wire::AttemptStatus>{};
  if (!found->ended() && found->boot_id != host_.boot_id()) {
    const Folder* folder = find(key);
    agent::judge_other_boot(folder->launches.empty() ? std::nullopt : folder->launches.back().exit, found->status);
    found->status.checkpoints.clear();
    found->status.log_bytes = folder->log.size();
    for (const Snapshot& snapshot : folder->snapshots) found->status.checkpoints.push_back(snapshot.checkpoint);
  }
  if (host_.world_.options.chatter > 0) host_.tell_life(key_of(key), found->status);
  return std::optional{std::move(found->status)};
}

std::optional<OpId> View::accepted_by(const AttemptKey& key) {
  const Folder* folder = find(key);
  if (folder == nullptr || folder->emptied) return std::nullopt;
  return folder->start->op;
}

Result<Duration> View::stop_grace(const AttemptKey& key) {
  const Folder* folder = find(key);
  if (folder == nullptr || folder->emptied) return make_error(Code::io, "no specification");
  return folder->start->spec.stop_grace;
}

Result<std::optional<std::int64_t>> View::stop_order(const AttemptKey& key) {
  const Folder* folder = find(key);
  return folder == nullptr ? std::nullopt : folder->stop;
}

Result<void> View::order_stop(const AttemptKey& key, std::int64_t grace_ns) {
  TRY(change(Point::host_order_stop, key.job, true));
  if (Folder* folder = find(key)) {
    folder->stop = grace_ns;
    if (folder->supervisor != 0) host_.watch_stop(key_of(key), grace_ns, folder->supervisor);
  }
  host_.changed(key_of(key));
  return changed();
}

Result<std::optional<std::int64_t>> View::deadline(const AttemptKey& key) {
  const Folder* folder = find(key);
  if (folder == nullptr || folder->emptied) return make_error(Code::io, "no deadline");
  return std::optional{folder->deadline};
}

Result<void> View::set_deadline(const AttemptKey& key, BootTime deadline) {
  TRY(change(Point::host_set_deadline, key.job, true));
  if (Folder* folder = find(key)) folder->deadline = deadline.ns;
  host_.changed(key_of(key));
  return changed();
}

Result<std::optional<std::int64_t>> View::kept_from(const AttemptKey& key) {
  const Folder* folder = find(key);
  return folder == nullptr ? std::nullopt : folder->kept;
}

Result<void> View::set_kept_from(const AttemptKey& key, std::uint64_t number) {
  TRY(change(Point::host_set_kept_from, key.job, true));
  if (Folder* folder = find(key)) folder->kept = static_cast<std::int64_t>(number);
  host_.changed(key_of(key));
  return changed();
}

Result<void> View::set_limits(const AttemptKey& key, const agent::HostLimits& limits) {
  Folder* folder = find(key);
  if (folder == nullptr || agent::nearly_equal(folder->limits, limits)) return {};
  TRY(change(Point::host_set_limits, key.job, true));
  folder->limits = limits;
  host_.changed(key_of(key));
  return changed();
}

// Advice: nothing that is judged depends on it.
Result<void> View::set_tempo(const AttemptKey& key, const wire::Tempo&) {
  TRY(meet(Point::host_set_tempo, key.job));
  if (std::exchange(fate_, Fate::well) == Fate::lost) return make_error(Code::io, "the disk fails at the end");
  return {};
}

Result<void> View::take_lease(const wire::StartRequest& request) {
  TRY(change(Point::host_take_lease, request.spec.job, false));
  agent::Lease lease = host_.lease_of(laptop_, request);
  lease.supervisor = host_.spawn();  // in the name of the agent, which lives as long as this request
  const std::uint64_t agent = static_cast<std::uint64_t>(lease.supervisor.pid);
  const Result<void> taken = host_.take(lease);
  host_.world_.after(k_s, host_.world_.host_node(host_.index_), [&host = host_, agent] { host.alive_.erase(agent); });
  TRY(taken);
  return changed();
}

Result<void> View::release_lease(const AttemptKey& key) {
  if (const Result<void> met = meet(Point::host_release_lease, key.job); !met) return host_.unreleased_.insert(key_of(key)), met;
  host_.release(key_of(key));
  return changed();
}

Result<void> View::create(const wire::StartRequest& request) {
  TRY(change(Point::host_create, request.spec.job, true));
  Folder folder;
  folder.start = std::make_shared<const wire::StartRequest>(request);
  folder.boot = request.boot_id;
  folder.deadline = (request.echo + request.lease).ns;
  if (request.allowance) folder.limits = agent::limits_at_start(*request.allowance, request.echo);
  folder.accepted_at = host_.world_.now;
  host_.folders_[key_of({request.spec.job, request.spec.epoch})] = std::move(folder);
  host_.standbys_.erase({laptop_, request.spec.job.value});  // it begins from what lies ready
  return changed();
}

Result<void> View::begin(const wire::StartRequest& request) {
  TRY(change(Point::host_begin, request.spec.job, false));
  const Host::Key key = key_of({request.spec.job, request.spec.epoch});
  host_.spawn_supervisor(key);
  TRY(changed());
  agent::Lease lease = host_.lease_of(laptop_, request);
  lease.supervisor = {static_cast<int>(host_.folder(key)->supervisor), 1};
  return host_.take(lease);
}

void View::adopt(const AttemptKey& key) {
  const auto found = stored(key);
  if (!found || !*found || (*found)->ended()) return;
  if (find(key)->supervisor != 0) return;
  host_.spawn_supervisor(key_of(key));
}

bool View::await_settled(const AttemptKey& key) {
  // Nothing of an earlier boot is left to be waited for: its supervisor concludes at once.
  const auto found = host_.supervisions_.find(key_of(key));
  if (found != host_.supervisions_.end()) found->second->begin();
  const auto after = stored(key);
  return after && *after && (*after)->ended();
}

Result<void> View::keep_work(const AttemptKey& key, Duration) {
  TRY(change(Point::host_keep_work, key.job, true));
  host_.kept_work_.insert(key_of(key));
  return changed();
}

Result<void> View::remove(const AttemptKey& key) {
  TRY(change(Point::host_remove, key.job, false));
  host_.world_.truth->removes(host_.index_, laptop_, key.job, key.epoch);
  if (const Folder* mine = find(key)) host_.world_.bags->removes(key.job, key.epoch, mine->emptied ? 0 : mine->bag.results.size());
  host_.release(key_of(key));
  host_.supervisions_.erase(key_of(key));
  host_.folders_.erase(key_of(key));
  return changed();
}

void View::adopt_all() {
  for (const JobId& id : jobs())
    if (const auto list = epochs(id))
      for (const Epoch epoch : *list) adopt({id, epoch});
}

}  // namespace gridctl::sim
