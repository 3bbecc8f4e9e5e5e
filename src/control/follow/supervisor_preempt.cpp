// SPDX-License-Identifier: Apache-2.0
// Jobs of higher priority: they are asked first when room becomes free, and running ones of lower priority make room
// for them, each when its next checkpoint is safe.
#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "control/fleet/free_capacity.hpp"
#include "control/follow/following.hpp"
#include "control/follow/queue.hpp"
#include "control/follow/supervisor.hpp"
#include "sched/preempt.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_preempt_pause = std::chrono::seconds{1};
constexpr std::size_t k_preempt_jobs = 8;  // that wait are planned for in one round

bool waits_for_room(const job::State& state) {
  const auto* waiting = std::get_if<job::Waiting>(&state.phase);
  return waiting != nullptr && waiting->why == "waiting_for_provider";
}
}  // namespace

// Those that wait for a place, in the order in which they get one.
std::vector<Supervisor::JobPtr> Supervisor::queue() const {
  std::vector<JobPtr> waiting;
  std::vector<Waits> wishes;
  std::map<std::string, double> held;
  for (const auto& [id, job] : jobs_) {
    if (const job::Attempt* attempt = job->state.attempt())
      for (const job::Member& member : attempt->members) held[job->owner] += load_of(member);
    if (!std::holds_alternative<job::Waiting>(job->state.phase)) continue;
    waiting.push_back(job);
    wishes.push_back({job->priority, job->owner, job->submitted_at, job->load});
  }
  std::vector<JobPtr> queue;
  for (const std::size_t next : in_turn(wishes, std::move(held))) queue.push_back(waiting[next]);
  return queue;
}

// What became free since they were asked last is theirs first. Ordering thousands costs more than seeing that nobody
// but the same owner's equals wait, who are asked in time.
void Supervisor::ask_those_before(const Following& than) {
  const auto is_due = [this](const Following& job) {
    return job.place_timer != nullptr && waits_for_room(job.state) && job.asked_at_room != room_;
  };
  const bool needed = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& entry) {
    const Following& job = *entry.second;
    const bool others = job.priority > than.priority || (job.priority == than.priority && job.owner != than.owner);
    return others && is_due(job);
  });
  if (!needed) return;
  for (const JobPtr& job : queue()) {
    if (job.get() == &than) return;
    if (is_due(*job)) place(job);
  }
}

void Supervisor::judge_preemptions(BootTime now) {
  if (now < next_preemptions_) return;
  next_preemptions_ = now + k_preempt_pause;
  std::map<std::string, std::string> asked;  // running job -> why it has to leave
  std::size_t planned = 0;
  for (const JobPtr& job : queue()) job->reserved.reset();
  for (const JobPtr& job : queue()) {
    if (planned >= k_preempt_jobs || !waits_for_room(job->state) || job->unsure) continue;
    const std::vector<sched::Holder> holders = holders_below(job->priority);
    if (holders.empty()) continue;
    ++planned;
    plan_preemption(job, holders, asked);
  }
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const auto found = asked.find(id);
    job->preempted = found != asked.end();
    const auto* running = std::get_if<job::Running>(&job->state.phase);
    if (!job->preempted || running == nullptr || running->move) continue;
    const Epoch epoch = running->attempt.epoch;
    apply(job, job::MoveRequested{epoch,
                                  std::string(job::k_for_priority),
                                  std::max(job->saved[epoch.value], job->listed[epoch.value]),
                                  {},
                                  found->second});
  }
}

// Running jobs that may be asked to make room. Who leaves for another reason will be gone by itself.
std::vector<sched::Holder> Supervisor::holders_below(int priority) const {
  std::vector<sched::Holder> holders;
  for (const auto& [id, job] : jobs_) {
    const auto* running = std::get_if<job::Running>(&job->state.phase);
    if (running == nullptr || job->priority >= priority || !job->saves || job->unsure) continue;
    if (running->move && running->move->why != job::k_for_priority) continue;
    const auto host = hosts_.find(running->attempt.host().value);
    if (host == hosts_.end() || !host->second->monitor->is_up()) continue;
    const job::Member& member = running->attempt.members.front();
    holders.push_back({job->state.id, job->priority, running->move.has_value(),
                       running->attempt.started_at.value_or(WallTime{}).ms, member.host, member.gpu_uuids, member.cpus,
                       member.memory_bytes});
  }
  return holders;
}

void Supervisor::plan_preemption(const JobPtr& job, const std::vector<sched::Holder>& holders,
                                 std::map<std::string, std::string>& asked) {
  const Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while looking for room");
  std::set<std::string> gone;
  for (const sched::Holder& holder : holders) gone.insert(holder.job.value);
  std::vector<sched::HostFacts> hosts = host_facts(*job, row->spec.recovery.lost_after, gone);
  const sched::JobKnowledge known = known_now(*row, hosts);
  const std::optional<sched::Preemption> plan = sched::preempt(row->spec, hosts, holders, job->state.avoided, known);
  if (!plan) return;
  job->reserved = member_of(plan->placement);
  std::vector<std::string> names;
  for (const JobId& leaves : plan->jobs) {
    names.push_back(leaves.value);
    asked[leaves.value] = "job " + job->state.id.value + " of priority " + std::to_string(job->priority) + " waits";
  }
  tell_preemption(job, plan->placement.host, join(names, ", "));
}

// Once for each set of jobs that it waits for.
void Supervisor::tell_preemption(const JobPtr& job, const HostName& host, const std::string& jobs) {
  const std::string text = "it will run on " + host.value +
                           " when the next checkpoints are safe of what runs there with " + "less priority: " + jobs;
  if (text == job->preemption_told) return;
  job->preemption_told = text;
  const Result<void> noted = registry_.note(job->state.id, clock_.wall(), {"preempting", text, {}, host});
  if (!noted) report(noted.error(), "while noting a preemption");
}

}  // namespace gridctl::control
