// SPDX-License-Identifier: Apache-2.0
// Effects on hosts: launching, stopping, collecting, settling. Each is repeated until the host has answered.
#include <utility>

#include "control/follow/attempt_spec.hpp"
#include "control/follow/following.hpp"
#include "control/follow/secrets.hpp"
#include "control/follow/supervisor.hpp"
#include "control/reach/pace.hpp"
#include "os/log.hpp"
#include "sched/interval.hpp"

namespace gridctl::control {

// --- Launching -------------------------------------------------------------------------------------------------------

void Supervisor::carry_out(const JobPtr& job, const job::Launch& effect) {
  const job::Attempt& attempt = effect.attempt;
  const std::string name = job::effect_name(job::Effect{effect});
  if (job->accepted.contains(attempt.epoch.value)) return;  // the payload is coming up: polls will tell
  const std::optional<HostAccess> place = work_place(attempt.host());
  if (!place) return apply(job, job::HostForgotten{attempt.host()});
  Result<registry::Job> row = registry_.job(job->state.id);
  Result<std::vector<registry::Input>> inputs = registry_.inputs(job->state.id);
  Result<std::vector<registry::AttemptRecord>> history = registry_.attempts(job->state.id);
  if (!row || !inputs || !history) {
    report(!row ? row.error() : !inputs ? inputs.error() : history.error(), "while preparing a launch");
    return try_later(job, name, k_launch_retry);
  }
  std::optional<registry::Checkpoint> restore;
  if (effect.restore.value > 0) {
    Result<registry::Checkpoint> found = registry_.checkpoint(job->state.id, effect.restore);
    if (!found) {
      report(found.error(), "while preparing a launch");
      return try_later(job, name, k_launch_retry);
    }
    restore = *found;
  }
  Result<std::map<std::string, std::string>> secrets =
      read_secrets(paths_.secrets_of(job->state.id), row->spec.secrets);
  if (!secrets) return apply(job, job::LaunchFailed{attempt.epoch, secrets.error().one_line(), false, {}});

  const job::Member& member = attempt.members.front();
  std::optional<Vendor> vendor;
  for (const Gpu& gpu : place->provider.inventory.gpus)
    if (!member.gpu_uuids.empty() && gpu.uuid == member.gpu_uuids.front()) vendor = gpu.vendor;
  if (job->interval.every == Duration{}) job->interval = tune(*job, row->spec, member);  // placed by a daemon before us
  const job::CheckpointPolicy& policy = row->spec.checkpoint;
  const bool fixed = policy.interval == job::CheckpointPolicy::Interval::fixed;
  const Duration interval = fixed ? policy.every : job->interval.every;
  std::string restart_reason;
  for (const registry::AttemptRecord& former : *history)
    if (former.number < attempt.number) restart_reason = former.reason;
  const AttemptFacts facts{*row,
                           attempt,
                           *inputs,
                           restore,
                           place->provider.host,
                           vendor,
                           interval,
                           restart_reason,
                           fixed ? policy.every : job->interval.pause};
  LaunchOrder order{build_attempt_spec(facts), row->spec.recovery.lease, *secrets, job->doubt, job->wanted, {}};
  if (restore) order.copies = copies_of(*restore);
  in_background(
      job, name, [place = *place, order = std::move(order)] { return launch(place, order); },
      [this, job, name, epoch = attempt.epoch, host_name = attempt.host()](LaunchResult result) {
        if (!result.healed_from.empty()) note_healed(*job, epoch, host_name, result.healed_from);
        if (job->state.epoch != epoch || !std::holds_alternative<job::Launching>(job->state.phase)) return;
        const LaunchVerdict verdict = judge_launch(result, job->doubt, job->state.policy.lost_after, clock_.boot());
        if (verdict == LaunchVerdict::accepted) {
          job->accepted.insert(epoch.value);
          apply(job, job::LaunchAccepted{epoch});
          if (const auto host = hosts_.find(host_name.value); host != hosts_.end()) host->second->monitor->poll_now();
        } else if (verdict == LaunchVerdict::again) {
          os::log(os::LogLevel::info, "launch on " + host_name.value + ": " + result.detail);
          try_later(job, name, k_launch_retry);
        } else {
          if (const auto host = hosts_.find(host_name.value); result.busy && host != hosts_.end()) {
            host->second->busy_until = clock_.boot() + k_busy_memory;
            host->second->monitor->poll_now();  // it will tell what is held there
            host->second->health.next = {};     // and, if it is a stranger's, on which GPU
          }
          apply(job, launch_failed(epoch, result));
        }
      });
}

CopiesOf Supervisor::copies_of(const registry::Checkpoint& checkpoint) {
  CopiesOf copies{checkpoint.job, checkpoint.seq, {}};
  Result<std::vector<RemoteAccess>> places = places_with(registry_, checkpoint.job, checkpoint.seq);
  if (places) copies.nearest_first = *std::move(places);
  else report(places.error(), "while looking for copies of a checkpoint");
  return copies;
}

void Supervisor::note_healed(const Following& job, Epoch epoch, const HostName& host, const std::string& from) {
  const Result<void> noted =
      registry_.note(job.state.id, clock_.wall(),
                     {"checkpoint_healed", "the checkpoint was damaged here; brought back " + from, epoch, host});
  if (!noted) report(noted.error(), "while noting that a checkpoint was brought back");
}

// --- Ending ----------------------------------------------------------------------------------------------------------

void Supervisor::carry_out(const JobPtr& job, const job::Stop& effect) {
  const std::optional<HostAccess> place = work_place(effect.host);
  if (!place) return apply(job, job::HostForgotten{effect.host});
  const std::string name = job::effect_name(job::Effect{effect});
  in_background(
      job, name, [place = *place, effect, id = job->state.id] { return stop(place, id, effect.epoch, effect.grace); },
      [this, job, name, effect](const Result<void>& result) {
        if (!result) report(result.error(), "while stopping job " + job->state.id.value);
        job->accepted.insert(effect.epoch.value);  // STOP has fenced it: asking about it can do no harm any more
        try_later(job, name, k_stop_retry);        // until its end is seen
        renew_wants();
        if (const auto host = hosts_.find(effect.host.value); host != hosts_.end()) host->second->monitor->poll_now();
      });
}

void Supervisor::carry_out(const JobPtr& job, const job::Collect& effect) {
  const std::optional<HostAccess> place = work_place(effect.host);
  if (!place) return apply(job, job::HostForgotten{effect.host});
  const std::string name = job::effect_name(job::Effect{effect});
  const std::uint64_t known = job->saved[effect.epoch.value];
  const bool patient = job->collect_tries[effect.epoch.value]++ < k_collect_tries;
  in_background(
      job, name,
      [place = *place, effect, id = job->state.id, known, head = head_root(*job), patient] {
        return collect(place, id, effect.epoch, effect.attempt, known, head, patient);
      },
      [this, job, name, effect](Result<Gathered> result) {
        if (!result) {
          // Tried again until the host answers or is given up: its last checkpoint may be there.
          report(result.error(), "while collecting from " + effect.host.value);
          return try_later(job, name, k_launch_retry);
        }
        if (result->checkpoint) {
          commit(job, effect.epoch, effect.attempt, *result->checkpoint);
          // The job must not end without it, for then it is removed at the host.
          if (job->saved[effect.epoch.value] < result->checkpoint->from.number)
            return try_later(job, name, k_launch_retry);
        }
        note_last_output(*job);
        apply(job, job::Collected{effect.epoch, result->problem});
      });
}

void Supervisor::carry_out(const JobPtr& job, const job::CleanUp& effect) {
  const job::PendingCleanup end = effect.end;
  const auto host = hosts_.find(end.host.value);
  if (host == hosts_.end()) return apply(job, job::HostForgotten{end.host});
  const std::string name = job::effect_name(job::Effect{effect});
  if (!host->second->monitor->is_up()) return try_later(job, name, k_settle_retry);
  in_background(
      job, name,
      [place = *work_place(end.host), end, id = job->state.id, known = job->saved[end.epoch.value],
       head = head_root(*job)] { return settle(place, id, end, known, head); },
      [this, job, name, end](Result<Gathered> result) {
        if (!result) {
          report(result.error(), "while cleaning up on " + end.host.value);
          return try_later(job, name, k_settle_retry);
        }
        if (!result->checkpoint) return apply(job, job::CleanedUp{end.host, end.epoch});
        commit(job, end.epoch, end.attempt, *result->checkpoint);
        if (job->saved[end.epoch.value] < result->checkpoint->from.number) try_later(job, name, k_settle_retry);
      });
}

}  // namespace gridctl::control
