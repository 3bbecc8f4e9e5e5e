// SPDX-License-Identifier: Apache-2.0
#include "control/follow/job_knowledge.hpp"

#include <algorithm>
#include <utility>

#include "control/fleet/host_facts.hpp"
#include "control/follow/progress.hpp"
#include "control/follow/tuning.hpp"
#include "sched/query/query.hpp"

namespace gridctl::control {

namespace {
constexpr double k_work_min = 1;  // seconds: a job that has worked longer than it declared is about to end
}  // namespace

Result<sched::JobKnowledge> knowledge_of(registry::JobRecords& registry, const registry::Job& job,
                                         const std::vector<sched::HostFacts>& hosts, WallTime now) {
  const job::Spec& spec = job.spec;
  sched::JobKnowledge known = sched::knowledge_of(spec);
  TRY_ASSIGN(const std::vector<registry::Input> inputs, registry.inputs(job.id));
  for (const registry::Input& input : inputs) known.task.input_bytes += static_cast<double>(input.bytes);
  TRY_ASSIGN(const std::vector<registry::Checkpoint> saved, registry.checkpoints(job.id));
  known.task.stall = seconds(measured_cost(saved, {}, spec.recovery.lost_after).stall);
  if (!saved.empty()) known.task.state_bytes = static_cast<double>(saved.back().bytes);
  known.task.resumes = job.machine.head.value != 0;
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(job.id));
  const Progress progress = progress_of(job, attempts, saved, hosts, now);
  known.work_known = progress.total.has_value();
  if (progress.total) known.task.work = std::max(k_work_min, *progress.total - progress.saved);
  if (spec.deadline) known.time_left = seconds(job::moment_of(*spec.deadline, job.submitted_at) - now);
  known.failures_max = job.machine.failures_max;
  // Hosts keep received files for a while.
  for (const registry::AttemptRecord& attempt : attempts)
    if (attempt.started_at) known.bytes_there[attempt.provider] = known.task.input_bytes;
  return known;
}

Result<std::optional<sched::CurrentRun>> present_of(registry::JobRecords& registry, const registry::Job& job,
                                                    const std::vector<sched::HostFacts>& hosts, WallTime now) {
  const std::optional<sched::CurrentRun> unknown;
  const job::Attempt* attempt = job.machine.attempt();
  if (attempt == nullptr || !std::holds_alternative<job::Running>(job.machine.phase)) return unknown;
  const auto host = std::ranges::find(hosts, attempt->lead().host, &sched::HostFacts::name);
  if (host == hosts.end()) return unknown;
  TRY_ASSIGN(sched::JobKnowledge known, knowledge_of(registry, job, hosts, now));
  if (!known.work_known) return unknown;
  TRY_ASSIGN(const std::vector<registry::Checkpoint> saved, registry.checkpoints(job.id));
  TRY_ASSIGN(const std::vector<registry::AttemptRecord> attempts, registry.attempts(job.id));
  const Progress progress = progress_of(job, attempts, saved, hosts, now);
  known.task.work = std::max(k_work_min, *progress.total - progress.saved - progress.unsaved);
  const std::vector<std::string>& uuids = attempt->lead().gpu_uuids;
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : host->inventory->gpus)
    if (std::find(uuids.begin(), uuids.end(), gpu.uuid) != uuids.end()) gpus.push_back(&gpu);
  sched::HostGroup group = sched::group_of(*host, gpus);
  group.speed = speed_with(job.spec, *host, gpus, attempt->lead().cpus);
  sched::CurrentRun present{host->name, sched::to_finish(known.task, group), group.failures_per_hour,
                            known.task.silence, known.task.work};
  present.rest.start = present.rest.transfer = 0;
  return std::optional{std::move(present)};
}

Result<void> apply_links(registry::HostRecords& registry, const job::Spec& spec, const sched::JobKnowledge& known,
                         std::vector<sched::HostFacts>& hosts) {
  const Result<sched::Query> query = sched::Query::parse(spec.constraints.query);
  const bool asked = query && query->asks(sched::FieldSource::links);
  if (!asked && known.task.input_bytes + known.task.state_bytes < k_bytes_worth_links) return {};
  TRY_ASSIGN(auto figures, link_figures(registry));
  for (sched::HostFacts& host : hosts) host.figures.merge(figures[host.name.value]);
  return {};
}

}  // namespace gridctl::control
