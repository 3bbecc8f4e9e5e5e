// SPDX-License-Identifier: Apache-2.0
// Jobs with a deadline: while they run, whether a failure now could still be made good.
#include <algorithm>
#include <utility>

#include "control/follow/following.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/follow/moves.hpp"
#include "control/follow/supervisor.hpp"
#include "sched/deadline.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_deadlines_pause = std::chrono::seconds{2};  // between two looks: the scheduler is asked each time
}  // namespace

void Supervisor::judge_deadlines(BootTime now) {
  if (now < next_deadlines_) return;
  next_deadlines_ = now + k_deadlines_pause;
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const auto* running = std::get_if<job::Running>(&job->state.phase);
    if (running == nullptr || running->move || !job->limits.until || clock_.wall() >= *job->limits.until) continue;
    const auto host = hosts_.find(running->attempt.host().value);
    if (host == hosts_.end() || is_drained(*host->second) || !host->second->monitor->is_up()) continue;
    judge_deadline(job, *host->second);
  }
}

void Supervisor::judge_deadline(const JobPtr& job, const Host& host) {
  const Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while looking at a deadline");
  // What does not save loses all by a move.
  if (row->spec.checkpoint.interval == job::CheckpointPolicy::Interval::off) return;
  std::vector<sched::HostFacts> hosts = host_facts(*job, row->spec.recovery.lost_after, {});
  const sched::JobKnowledge known = known_now(*row, hosts);
  if (!known.is_due()) return;
  const Result<std::optional<sched::CurrentRun>> present = present_of(registry_, *row, hosts, clock_.wall());
  if (!present) return report(present.error(), "while looking at a deadline");
  if (!*present) return;
  const sched::Decision elsewhere =
      decide(*job, row->spec, sched::after_failure(known, **present), std::move(hosts), &host);
  const sched::DeadlineVerdict verdict = sched::judge_deadline(**present, elsewhere, *known.time_left);
  const Epoch epoch = job->state.attempt()->epoch;
  if (verdict.kind == sched::DeadlineVerdict::Kind::risky) tell_risk(job, verdict.text);
  if (verdict.kind != sched::DeadlineVerdict::Kind::leave) return;
  apply(job, job::MoveRequested{epoch,
                                std::string(job::k_for_deadline),
                                std::max(job->saved[epoch.value], job->listed[epoch.value]),
                                {},
                                verdict.text,
                                verdict.failures_max});
}

// Once for each attempt.
void Supervisor::tell_risk(const JobPtr& job, const std::string& text) {
  const job::Attempt* attempt = job->state.attempt();
  if (attempt == nullptr || job->risk_told == attempt->epoch) return;
  job->risk_told = attempt->epoch;
  const Result<void> noted =
      registry_.note(job->state.id, clock_.wall(), {"deadline_at_risk", text, attempt->epoch, attempt->host()});
  if (!noted) report(noted.error(), "while noting that a deadline is at risk");
}

}  // namespace gridctl::control
