// SPDX-License-Identifier: Apache-2.0
// Several replicas of one job at once (replication.mode: active). The job itself leads; the others are jobs of their
// own, which are made when it begins and end with it. Whichever is done first gives the result, and that is the
// leader's. Two of them never run on one machine.
#include <algorithm>

#include "control/fleet/free_capacity.hpp"
#include "control/follow/following.hpp"
#include "control/follow/limits.hpp"
#include "control/follow/secrets.hpp"
#include "control/follow/supervisor.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_replicas_pause = std::chrono::seconds{1};
constexpr std::size_t k_name_max = 63;

bool goes_on(const job::State& state) {
  return !std::holds_alternative<job::Done>(state.phase) && !state.cancel && state.overtaken.empty();
}

std::string in_words(const registry::JobRow& replica) {
  return "replica " + replica.name + " (" + replica.id.value + ")";
}

// It spends the leader's budget, and is stopped with it. What is copied elsewhere is the leader's.
job::Spec replica_spec(const registry::Job& leader, int number) {
  job::Spec spec = leader.spec;
  const std::string ending = "-r" + std::to_string(number);
  spec.name = spec.name.substr(0, k_name_max - ending.size()) + ending;
  spec.replicas = 1;
  spec.replica_of = leader.id;
  spec.checkpoint.copies = 1;
  spec.budget_total.reset();
  spec.max_duration.reset();
  if (spec.deadline) spec.deadline = job::Deadline{job::moment_of(*spec.deadline, leader.submitted_at), {}, false};
  return spec;
}
}  // namespace

void Supervisor::judge_replicas(BootTime now) {
  if (now < next_replicas_) return;
  next_replicas_ = now + k_replicas_pause;
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    if (job->unsure || !goes_on(job->state)) continue;
    if (job->replicas > 1) keep_replicas(job);
    if (!job->replica_of.value.empty()) end_with_leader(job);
  }
}

// Makes those that are missing, and looks whether one is done.
void Supervisor::keep_replicas(const JobPtr& leader) {
  for (int number = 2; number <= leader->replicas; ++number) {
    const JobId id = registry::replica_id(leader->state.id, number);
    const auto followed = jobs_.find(id.value);
    if (followed != jobs_.end() && goes_on(followed->second->state)) {
      leader->replicas_seen.insert(id.value);
      continue;
    }
    const Result<registry::Job> row = registry_.job(id);
    if (!row && row.error().code != Code::not_found) return report(row.error(), "while looking for a replica");
    if (!row) {
      if (const Result<void> made = make_replica(leader, number); !made) report(made.error(), "while making a replica");
    } else if (row->state == job::JobState::succeeded) {
      return take_result(leader, *row);
    } else if (job::is_final(row->state) && row->machine.limit == k_limit_leader) {
      if (const Result<void> resumed = resume_replica(*row); !resumed)
        report(resumed.error(), "while resuming a replica");
    } else if (job::is_final(row->state) && leader->replicas_seen.erase(id.value) > 0) {
      const Result<void> noted = registry_.note(
          leader->state.id, clock_.wall(),
          {"replica_ended", in_words(*row) + " ended: " + row->machine.reason_text + "; the others go on", {}, {}});
      if (!noted) report(noted.error(), "while noting a replica's end");
    }
  }
}

Result<void> Supervisor::make_replica(const JobPtr& leader, int number) {
  TRY_ASSIGN(const registry::Job row, registry_.job(leader->state.id));
  TRY_ASSIGN(const std::vector<registry::Input> inputs, registry_.inputs(row.id));
  const JobId id = registry::replica_id(row.id, number);
  TRY(share_secrets(row.id, id, row.spec.secrets));
  const job::Spec spec = replica_spec(row, number);
  TRY(registry_.submit(id, spec, clock_.wall(), inputs));
  next_reload_ = {};
  const std::string text = "replica " + std::to_string(number) + " of " + std::to_string(row.spec.replicas) + " is " +
                           spec.name + " (" + id.value + ")";
  return registry_.note(row.id, clock_.wall(), {"replica", text, {}, {}});
}

// Its leader was resumed while it was still being stopped.
Result<void> Supervisor::resume_replica(const registry::Job& replica) {
  TRY(share_secrets(replica.spec.replica_of, replica.id, replica.spec.secrets));
  TRY(registry_.apply(replica.id, {clock_.wall(), job::ResumeRequested{}}));
  next_reload_ = {};
  return {};
}

Result<void> Supervisor::share_secrets(const JobId& from, const JobId& to, const std::vector<std::string>& names) {
  if (names.empty()) return {};
  TRY_ASSIGN(const auto secrets, read_secrets(paths_.secrets_of(from), names));
  return write_secrets(paths_.secrets_of(to), secrets);
}

void Supervisor::take_result(const JobPtr& leader, const registry::Job& replica) {
  take(leader, registry_.take_result(
                   leader->state.id, replica.id,
                   {clock_.wall(), job::ReplicaSucceeded{in_words(replica) + " was done first: its result is taken"}}));
}

// A result needs nothing of the others any more; else they save, for they may be resumed with their leader.
void Supervisor::end_with_leader(const JobPtr& replica) {
  const Result<registry::Job> leader = registry_.job(replica->replica_of);
  if (!leader) return report(leader.error(), "while looking for the leader of a replica");
  if (goes_on(leader->machine)) return;
  const job::State& its = leader->machine;
  const bool has_result = leader->state == job::JobState::succeeded || !its.overtaken.empty();
  const std::string why = has_result           ? "has its result"
                          : !its.limit.empty() ? "was stopped: " + its.limit_text
                          : its.cancel         ? "was cancelled"
                                               : "failed: " + its.reason_text;
  apply(replica, job::LimitReached{std::string(k_limit_leader), leader->name + " (" + leader->id.value + ") " + why,
                                   has_result ? Duration::zero() : job::k_limit_grace});
}

// No two on one machine, under whatever names.
void Supervisor::keep_apart(const Following& asking, std::vector<sched::HostFacts>& hosts) const {
  if (asking.replicas <= 1 && asking.replica_of.value.empty()) return;
  const JobId& group = asking.replica_of.value.empty() ? asking.state.id : asking.replica_of;
  for (const auto& [id, job] : jobs_) {
    if (job.get() == &asking || (job->state.id != group && job->replica_of != group)) continue;
    std::vector<HostName> places;
    if (const job::Attempt* attempt = job->state.attempt()) places.push_back(attempt->host());
    for (const std::optional<job::Member>& kept : {job->promised, job->reserved})
      if (kept) places.push_back(kept->host);
    for (const HostName& place : places) {
      const auto there = hosts_.find(place.value);
      if (there == hosts_.end()) continue;
      for (sched::HostFacts& facts : hosts) {
        const Host& host = *hosts_.at(facts.name.value);
        if (&host == there->second.get() ||
            is_same_provider({&host.provider, host.boot_id}, {&there->second->provider, there->second->boot_id}))
          facts.apart = "another replica is there: " + id;
      }
    }
  }
}

}  // namespace gridctl::control
