// SPDX-License-Identifier: Apache-2.0
// Warm standby: the newest checkpoint of a job lies ready as files on the host that would get the job next, so that a
// failover waits neither for the transfer nor for the restore. Only a help: whatever is not there is restored as ever.
#include <algorithm>

#include "control/fleet/free_capacity.hpp"
#include "control/follow/following.hpp"
#include "control/follow/supervisor.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_look = std::chrono::seconds{1};           // between two looks at all jobs
constexpr Duration k_look_again = std::chrono::seconds{5};     // at a job where nothing was to do
constexpr Duration k_failed_pause = std::chrono::seconds{60};  // after a host could not take it
constexpr Duration k_name_again = std::chrono::hours{6};       // a host forgets it after 24
constexpr int k_rest_factor = 4;                               // at most a fifth of the time goes into it
constexpr const char* k_name = "standby";
}  // namespace

void Supervisor::keep_standbys(BootTime now) {
  if (now < next_standbys_) return;
  next_standbys_ = now + k_look;
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const bool due = now >= job->standby.next && !job->unsure && !job->under_way.contains(k_name);
    if (due && std::holds_alternative<job::Running>(job->state.phase) && job->state.head.value > 0)
      keep_standby(job, now);
  }
}

void Supervisor::keep_standby(const JobPtr& job, BootTime now) {
  job->standby.next = now + k_look_again;
  const Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while looking for a standby");
  if (!row->spec.checkpoint.standby) {
    job->standby.next = now + k_name_again;  // a job's file does not change
    return;
  }
  const auto here = hosts_.find(job->state.attempt()->host().value);
  if (here == hosts_.end()) return;
  if (job->standby.host == job->state.attempt()->host()) job->standby.host = {};  // it has begun from there
  const sched::Decision decision = decide(*job, *row, here->second.get());
  if (!decision.placement) return;
  const HostName& next = decision.placement->host;
  const bool is_there = job->standby.host == next && job->standby.head == job->state.head;
  if (is_there) job->standby.instead_of = job->state.attempt()->host();
  if (is_there && now < job->standby.named + k_name_again) return;
  const Result<registry::Checkpoint> newest = registry_.checkpoint(job->state.id, job->state.head);
  if (!newest) return report(newest.error(), "while looking for a standby");
  if (!job->standby.host.value.empty() && job->standby.host != next) drop_standby(job);
  make_standby(job, *newest, next);
}

void Supervisor::make_standby(const JobPtr& job, const registry::Checkpoint& newest, const HostName& where) {
  const BootTime began = clock_.boot();
  in_background(
      job, k_name,
      [place = *work_place(where), id = job->state.id, root = newest.root] {
        return control::make_standby(place, id, root);
      },
      [this, job, where, began, seq = newest.seq,
       instead_of = job->state.attempt()->host()](const Result<std::uint64_t>& bytes) {
        const BootTime now = clock_.boot();
        if (!bytes) {
          report(bytes.error(),
                 "while keeping a checkpoint of job " + job->state.id.value + " ready on " + where.value);
          job->standby.next = now + k_failed_pause;
          return;
        }
        const bool news = job->standby.host != where;
        job->standby = {where, instead_of, seq, now, now + (now - began) * k_rest_factor};
        if (job::is_final(job->state.visible())) return drop_standby(job);
        if (!news) return;
        const std::string text = where.value + " keeps the newest checkpoint ready, now " + std::to_string(seq.value) +
                                 " (" + format_size(*bytes) + ", " + format_duration(now - began) + ")";
        const auto noted = registry_.note(job->state.id, clock_.wall(), {"standby", text, job->state.epoch, where});
        if (!noted) report(noted.error(), "while recording a standby");
      });
}

// Where its newest checkpoint lies ready, if that was chosen as if the host that it has lost were gone, and would be so
// again. A host that is back after a reboot looks as good as before it; but all would have to be sent there once more.
std::optional<sched::Decision> Supervisor::decide_for_standby(const Following& job, const registry::Job& row) {
  const auto* waiting = std::get_if<job::Waiting>(&job.state.phase);
  const auto lost = hosts_.find(job.standby.instead_of.value);
  const bool own_wish = waiting == nullptr || waiting->why == "restart_requested";  // the host was sound
  if (own_wish || lost == hosts_.end() || job.standby.host.value.empty() || job.standby.head != job.state.head)
    return std::nullopt;
  sched::Decision decision = decide(job, row, lost->second.get());
  if (!decision.placement || decision.placement->host != job.standby.host) return std::nullopt;
  decision.placement->reason += "; its newest checkpoint lies ready there";
  return decision;
}

// Tried once: a host forgets it by itself.
void Supervisor::drop_standby(const JobPtr& job) {
  const HostName from = std::exchange(job->standby.host, {});
  const std::optional<HostAccess> place = from.value.empty() ? std::nullopt : work_place(from);
  if (!place) return;
  in_background(
      job, "no " + std::string(k_name) + " on " + from.value,
      [place = *place, id = job->state.id] { return control::drop_standby(place, id); },
      [this, from](const Result<void>& dropped) {
        if (!dropped) report(dropped.error(), "while removing a standby from " + from.value);
      });
}

}  // namespace gridctl::control
