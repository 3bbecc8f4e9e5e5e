// SPDX-License-Identifier: Apache-2.0
// Fetches outputs of jobs, at the end of an attempt and while it runs. For a gang, fetches those of its first member.
#include "control/follow/attempts.hpp"

#include <algorithm>

#include "control/follow/lent_hosts.hpp"
#include "control/follow/results.hpp"
#include "job/last_step.hpp"

namespace gridctl::control {

ResultsWanted Attempts::results_wanted(const TrackedJob& job, int rank) {
  const auto* collecting = job.in<job::Collecting>();
  const Result<std::optional<registry::Results>> before = world_.records.results(job.id());
  if (!before) report(before.error(), "while reading the results of a job");
  ResultsWanted wanted = wanted_at_end(job.spec().outputs, collecting != nullptr && collecting->end.success(),
                                       before ? *before : std::nullopt);
  // A bag's last step makes the files that the bag is for.
  if (job::is_last_step(job.spec())) wanted.tree = true;
  else if (job.spec().tasks && !job.spec().tasks->finally_run.empty()) wanted.nothing = true;
  // Without checkpoints, that folder is an ordinary one.
  if (interval_now(fleet_, job) == job::CheckpointPolicy::Interval::off && !wanted.patterns.empty() &&
      !job.spec().checkpoint.path.empty())
    wanted.patterns.push_back(job.spec().checkpoint.path);
  wanted.nothing = wanted.nothing || rank != 0;
  return wanted;
}

bool Attempts::has_newer_results(const TrackedJob& job, Epoch epoch) {
  if (job.state().epoch <= epoch) return false;
  const Result<std::optional<registry::Results>> here = world_.records.results(job.id());
  const Result<std::vector<registry::AttemptRecord>> attempts = world_.records.attempts(job.id());
  if (!here || !attempts) return true;  // what is here stays
  return *here && (*here)->root && std::ranges::any_of(*attempts, [&](const registry::AttemptRecord& one) {
           return one.epoch > epoch && one.started_at;
         });
}

// A failure is retried at the next due time, because nothing waits for it.
void Attempts::sync_results(const FleetHost& host, TrackedJob& job, int rank, const wire::AttemptStatus& status) {
  const job::OutputSync sync = job::outputs_while_running(job.spec().outputs);
  const job::Attempt* attempt = job.state().attempt();
  if (sync.patterns.empty() || rank != 0 || attempt == nullptr || attempt->epoch != status.epoch ||
      status.phase != wire::AttemptPhase::running)
    return;
  const BootTime now = world_.clock.boot();
  BootTime& synced = work(job.id()).results_synced;
  if (synced == BootTime{}) synced = now;  // the first is due when the interval is over
  if (now - synced < sync.every) return;
  const std::optional<HostReach> reach = fleet_.reach(host.provider.name);
  const Result<std::optional<registry::Results>> before = world_.records.results(job.id());
  if (!reach || !before) return;
  synced = now;
  const ResultsWanted wanted{sync.patterns, true, *before ? (*before)->root : std::nullopt, false};
  in_background(
      job.id(), "outputs/" + std::to_string(status.epoch.value), {os::Lane::Kind::bulk, host.provider.name.value},
      [world = world_, reach = with_budget(*reach, world_.clock), id = job.id(), epoch = status.epoch,
       wanted]() -> Result<GatheredResults> {
        TRY_ASSIGN(const transfer::BulkLink bulk, world.freight.reach(reach, k_reach_patience));
        TRY_ASSIGN(GatheredResults gathered,
                   gather_results(world.freight, reach, *bulk.link, world.clock, id, epoch, wanted));
        mask_names(world.folders, id, gathered.reply);
        return gathered;
      },
      [this, wanted, epoch = status.epoch, name = host.provider.name](TrackedJob& its,
                                                                      const Result<GatheredResults>& gathered) {
        // An attempt that was given up in the meantime does not count: its successor's outputs are newer. The same
        // holds for outputs fetched after its program had ended.
        const job::Attempt* current = its.state().attempt();
        if (current == nullptr || current->epoch != epoch || current->lead().part >= job::Part::ended) return;
        if (!gathered) return report(gathered.error(), "while fetching outputs of job " + its.id().value);
        report(keep_results(world_.records, its.id(), epoch, name, wanted, *gathered, false, world_.clock.wall()),
               "while recording the outputs");
      });
}

}  // namespace gridctl::control
