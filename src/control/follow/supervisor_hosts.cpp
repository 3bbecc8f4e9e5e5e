// SPDX-License-Identifier: Apache-2.0
// What hosts say, and what their silence means.
#include <algorithm>
#include <utility>

#include "control/follow/following.hpp"
#include "control/follow/interpret_status.hpp"
#include "control/follow/log_file.hpp"
#include "control/follow/supervisor.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_seen_pause = std::chrono::seconds{30};  // last_seen is written no more often

std::string_view liveness_name(job::Liveness liveness) {
  switch (liveness) {
    case job::Liveness::answering: return "answering";
    case job::Liveness::suspect: return "suspect";
    case job::Liveness::unreachable: return "unreachable";
    case job::Liveness::lost: return "lost";
  }
  return "unknown";
}

// Something that was held is held no more.
bool is_less(const std::vector<wire::HeldShare>& now, const std::vector<wire::HeldShare>& before) {
  return std::any_of(before.begin(), before.end(), [&](const wire::HeldShare& share) {
    return std::find(now.begin(), now.end(), share) == now.end();
  });
}

constexpr Duration k_idle_lost_after = std::chrono::seconds{60};  // for judging hosts without jobs

}  // namespace

void Supervisor::on_poll(Host& host, const wire::PollReply& reply) {
  const BootTime now = clock_.boot();
  if (now - host.seen_saved > k_seen_pause) {
    host.seen_saved = now;
    host.seen_unsaved = clock_.wall();
  }
  note_room(host, reply);
  reliability_.answered(host.provider, reply.boot_id);
  for (const wire::AttemptStatus& status : reply.attempts) {
    const auto job = jobs_.find(status.job.value);
    if (job != jobs_.end()) on_status(host, JobPtr(job->second), status);
  }
}

// In the course of a tick many hosts may have told of themselves: one transaction for all, as each costs a synced file.
void Supervisor::save_news_of_hosts() {
  std::vector<Host*> seen, judged;
  for (auto& [name, host] : hosts_) {
    if (host->seen_unsaved) seen.push_back(host.get());
    if (host->health.unsaved) judged.push_back(host.get());
  }
  if (seen.empty() && judged.empty()) return;
  const Result<void> saved = registry_.together([&]() -> Result<void> {
    for (Host* host : seen) {
      const WallTime at = *std::exchange(host->seen_unsaved, std::nullopt);
      TRY(registry_.set_liveness(host->provider.name, "answering", at));
    }
    for (Host* host : judged) TRY(save_health_of(*host));
    return {};
  });
  if (!saved) report(saved.error(), "while noting what hosts say");
}

// What is leased there; jobs that wait are asked for when something was given back.
void Supervisor::note_room(Host& host, const wire::PollReply& reply) {
  host.boot_id = reply.boot_id;
  if (std::exchange(host.missed, false)) capacity_freed();
  if (!reply.held) return;
  host.busy_until = {};
  if (host.held && is_less(*reply.held, *host.held)) capacity_freed();
  host.held = reply.held;
}

void Supervisor::on_status(Host& host, const JobPtr& job, const wire::AttemptStatus& status) {
  Reading reading = read_status(job->state, host.provider.name, job->accepted.contains(status.epoch.value), status);
  if (const wire::HostCheckpoint* newest = newest_beyond(status, job->listed[status.epoch.value]))
    job->listed[status.epoch.value] = newest->number;
  for (job::Happening& event : reading.events) apply(job, std::move(event));
  if (reading.output) fetch_log(host, job, status);
  if (reading.checkpoints) pull_newest(job, host, status);
}

void Supervisor::fetch_log(Host& host, const JobPtr& job, const wire::AttemptStatus& status) {
  const job::Attempt* attempt = job->state.attempt();
  const Result<std::uint64_t> offset = log_next_offset(paths_.log_of(job->state.id, attempt->number));
  if (!offset) return report(offset.error(), "while reading a job's log");
  if (*offset >= status.log_bytes) return;
  if (host.monitor->request_log({status.job, status.epoch, *offset, k_log_piece}) &&
      status.log_bytes - *offset > k_log_piece)
    host.monitor->poll_now();  // there is more: come again at once
}

void Supervisor::pull_newest(const JobPtr& job, const Host& host, const wire::AttemptStatus& status) {
  const wire::HostCheckpoint* found = newest_beyond(status, job->saved[status.epoch.value]);
  const std::string name = "pull/" + std::to_string(status.epoch.value);
  if (found == nullptr || job->under_way.contains(name) || job->later.contains(name)) return;
  const wire::HostCheckpoint newest = *found;
  const std::optional<HostAccess> place = work_place(host.provider.name);
  const job::Attempt* attempt = job->state.attempt();
  if (!place || attempt == nullptr) return;
  in_background(
      job, name,
      [place = *place, id = job->state.id, epoch = status.epoch, newest, head = head_root(*job)] {
        return pull(place, id, epoch, newest, head);
      },
      [this, job, name, epoch = status.epoch, number = attempt->number](Result<Pulled> result) {
        if (result) return commit(job, epoch, number, *result);
        report(result.error(), "while fetching a checkpoint of job " + job->state.id.value);
        const auto noted = registry_.note(job->state.id, clock_.wall(),
                                          {"checkpoint_fetch_failed", result.error().one_line(), epoch, {}});
        if (!noted) report(noted.error(), "while recording it");
        try_later(job, name, k_pull_retry);
      });
}

std::optional<Digest> Supervisor::head_root(const Following& job) {
  if (job.state.head.value == 0) return std::nullopt;
  const Result<registry::Checkpoint> head = registry_.checkpoint(job.state.id, job.state.head);
  return head ? std::optional{head->root} : std::nullopt;
}

void Supervisor::commit(const JobPtr& job, Epoch epoch, AttemptNumber attempt, const Pulled& pulled) {
  registry::Checkpoint row;
  row.job = job->state.id;
  row.epoch = epoch;
  row.attempt = attempt;
  row.root = pulled.from.root;
  row.created_at = clock_.wall();
  row.bytes = pulled.bytes;
  row.stored_bytes = pulled.stored_bytes;
  row.files = pulled.files;
  row.host_number = pulled.from.number;
  row.how = pulled.from.how;
  row.metrics = pulled.from.metrics;
  if (pulled.from.written_ms) row.stall = std::chrono::milliseconds{*pulled.from.written_ms};
  row.upload = std::chrono::milliseconds{pulled.from.age_ms} + pulled.took;
  const Result<registry::Registry::Commit> committed = registry_.commit_checkpoint(row);
  if (!committed) return report(committed.error(), "while committing a checkpoint of job " + job->state.id.value);
  job->saved[epoch.value] = std::max(job->saved[epoch.value], pulled.from.number);
  // Also what an earlier try has committed without our being told.
  if (!(committed->step.state == job->state)) adopt(job, committed->step.state);
  const Result<registry::Job> full = registry_.job(job->state.id);
  const auto old = full ? registry_.prunable(job->state.id, full->spec.checkpoint.keep)
                        : Result<std::vector<registry::Checkpoint>>(full.error());
  if (!old) return report(old.error(), "while looking for old checkpoints");
  for (const registry::Checkpoint& c : *old) {
    const Result<void> removed = registry_.remove_checkpoint(c.job, c.seq);
    if (!removed) report(removed.error(), "while removing an old checkpoint");
  }
  if (full) retune(job, full->spec);
  renew_wants();
}

// Tells every monitor which attempts to renew and how often to ask.
void Supervisor::renew_wants() {
  std::vector<Duration> patience;
  for (const auto& [id, job] : jobs_)
    if (job->state.attempt() != nullptr) patience.push_back(job->state.policy.lost_after);
  const Duration heartbeat = heartbeat_for(patience, !jobs_.empty());
  std::map<std::string, std::vector<HostMonitor::Want>> wants;  // by name of the host
  for (auto& [id, job] : jobs_) {
    const job::Attempt* attempt = job->state.attempt();
    if (attempt == nullptr || !job->accepted.contains(attempt->epoch.value)) continue;
    const std::uint64_t saved = job->saved[attempt->epoch.value];
    const auto* running = std::get_if<job::Running>(&job->state.phase);
    const bool leaves = running != nullptr && running->move;
    const wire::Tempo tempo{leaves ? job->interval.soon : job->interval.every, job->interval.pause};
    wants[attempt->host().value].push_back({{job->state.id, attempt->epoch, saved, tempo}, job->state.policy.lease});
  }
  for (auto& [name, host] : hosts_) host->monitor->set_wants(std::move(wants[name]), heartbeat);
}

void Supervisor::judge_hosts(BootTime now) {
  for (auto& [name, host] : hosts_) host->monitor->heard(host->life->last());
  const auto answers = [now](const Host& host) {
    return is_witness(host.monitor->last_answer(), host.monitor->heartbeat(), now);
  };
  const auto witnesses =
      std::count_if(hosts_.begin(), hosts_.end(), [&](const auto& entry) { return answers(*entry.second); });
  for (auto& [name, host] : hosts_) host->monitor->tick(now, witnesses > (answers(*host) ? 1 : 0));
  std::map<std::string_view, Duration> patience;  // of the jobs on a host, by its name
  for (const auto& [id, job] : jobs_)
    if (const job::Attempt* attempt = job->state.attempt(); attempt != nullptr) {
      Duration& shortest = patience.try_emplace(attempt->host().value, k_idle_lost_after).first->second;
      shortest = std::min(shortest, job->state.policy.lost_after);
    }
  for (auto& [name, host] : hosts_) {
    const auto of_jobs = patience.find(name);
    const job::Liveness liveness =
        host->monitor->silence().judge(of_jobs == patience.end() ? k_idle_lost_after : of_jobs->second);
    if (liveness != host->liveness) {
      host->liveness = liveness;
      if (liveness == job::Liveness::lost) reliability_.lost(host->provider, host->monitor->silence().counted());
      const auto saved =
          registry_.set_liveness(host->provider.name, std::string(liveness_name(liveness)), std::nullopt);
      if (!saved) report(saved.error(), "while noting a host's state");
      const std::string silent = format_duration(host->monitor->silence().counted());
      const std::string text = liveness == job::Liveness::answering
                                   ? name + " answers again"
                                   : name + " is " + std::string(liveness_name(liveness)) + ": silent for " + silent;
      for (const auto& [id, job] : jobs_)
        if (const job::Attempt* attempt = job->state.attempt(); attempt != nullptr && attempt->host().value == name) {
          const auto noted = registry_.note(
              job->state.id, clock_.wall(),
              {"host_" + std::string(liveness_name(liveness)), text, attempt->epoch, host->provider.name});
          if (!noted) report(noted.error(), "while recording a host's state");
        }
    }
  }
  reliability_.tick(now);
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const job::Attempt* attempt = job->state.attempt();
    const auto host = attempt == nullptr ? hosts_.end() : hosts_.find(attempt->host().value);
    if (host == hosts_.end()) continue;
    if (const auto lost = read_silence(job->state, host->second->monitor->silence())) apply(job, *lost);
  }
}

}  // namespace gridctl::control
