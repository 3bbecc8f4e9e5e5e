// SPDX-License-Identifier: Apache-2.0
#include "control/follow/use_book.hpp"

#include <algorithm>

namespace gridctl::control {

UseBook::UseBook(os::Clock& clock, Fleet& fleet, JobBook& jobs) : clock_(clock), book_(jobs) {
  fleet.listen(*this);
  jobs.listen(*this);
}

void UseBook::polled(const FleetHost& host, const wire::PollReply& reply) {
  const WallTime now = clock_.wall();
  registry::HostLoad& load = hosts_[host.provider.name.value];
  load = {host.provider.name, now, reply.load1, reply.disk_free_bytes, reply.held ? 0 : -1};
  if (reply.held)
    for (const wire::HeldShare& share : *reply.held) load.gpus_held += static_cast<int>(share.gpu_uuids.size());
  for (const wire::AttemptStatus& status : reply.attempts) {
    if (!status.use) continue;
    const TrackedJob* job = book_.find(status.job);
    const auto* running = job == nullptr ? nullptr : job->in<job::Running>();
    if (running == nullptr || running->attempt.epoch != status.epoch) continue;
    const job::Member* member = running->attempt.on(host.provider.name);
    if (member == nullptr) continue;
    registry::JobUse& mine = jobs_[job->id().value];
    if (mine.epoch != status.epoch) mine = {job->id(), status.epoch, {}};
    auto at = std::ranges::find_if(mine.members, [&](const registry::MemberUse& one) { return one.rank >= member->rank; });
    if (at == mine.members.end() || at->rank != member->rank) at = mine.members.insert(at, registry::MemberUse{});
    at->rank = member->rank;
    at->host = host.provider.name;
    at->at = WallTime{now.ms - status.use->age_ms};
    at->cpus_given = member->cpus;
    at->use = *status.use;
    at->use.gpus.resize(std::min(at->use.gpus.size(), member->gpu_uuids.size()));
    ++version_;
    const std::optional<int> percent = registry::busy_percent(*at);
    if (!percent) continue;
    if (at->history.size() >= registry::k_use_history) at->history.erase(at->history.begin());
    at->history.push_back(*percent);
  }
}

void UseBook::changed(const TrackedJob& job, const job::State&) {
  const auto found = jobs_.find(job.id().value);
  if (found == jobs_.end()) return;
  const auto* running = job.in<job::Running>();
  if (running != nullptr && running->attempt.epoch == found->second.epoch) return;
  jobs_.erase(found);
  ++version_;
}

registry::UseNow UseBook::now() const {
  registry::UseNow use;
  use.at = clock_.wall();
  for (const auto& [id, job] : jobs_) use.jobs.push_back(job);
  for (const auto& [name, host] : hosts_) use.hosts.push_back(host);
  return use;
}

}  // namespace gridctl::control
