// SPDX-License-Identifier: Apache-2.0
#include "control/follow/job_knowledge.hpp"

#include <algorithm>
#include <utility>

#include "control/fleet/host_facts.hpp"
#include "control/follow/tuning.hpp"
#include "sched/cost.hpp"
#include "sched/query/query.hpp"

namespace gridctl::control {

namespace {
constexpr double k_share_min = 0.01;  // of the work: less says nothing of the whole

double between(WallTime from, WallTime to) {
  return static_cast<double>(std::max<std::int64_t>(to.ms - from.ms, 0)) / 1000;
}

// Assumes the first GPUs of the host, as many as the job asks for: which ones it had is not recorded.
double speed_on(const std::vector<sched::HostFacts>& hosts, const HostName& name, const job::Spec& spec) {
  const std::vector<job::GpuRequest>& wanted = spec.resources.gpus;
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const auto& one) { return one.name == name; });
  if (host == hosts.end() || (wanted.empty() && spec.variants.empty())) return 1;
  const auto count = static_cast<std::size_t>(wanted.empty() ? 1 : wanted.front().count_min);
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : host->inventory->gpus)
    if (gpus.size() < count) gpus.push_back(&gpu);
  return speed_with(spec, *host, gpus, std::max(1.0, spec.resources.cpus));
}

std::optional<double> told_share(const job::State& state, const std::vector<registry::Checkpoint>& checkpoints) {
  for (const registry::Checkpoint& one : checkpoints) {
    if (one.seq != state.head) continue;
    const auto told = one.metrics.find(k_progress_metric);
    if (told != one.metrics.end() && told->second >= 0 && told->second <= 1) return told->second;
  }
  return std::nullopt;
}
}  // namespace

double speed_with(const job::Spec& spec, const sched::HostFacts& host, const std::vector<const Gpu*>& gpus,
                  double cpus) {
  const bool instead_of_gpus = !spec.variants.empty() && gpus.empty();
  return instead_of_gpus ? sched::speed_of_cores(cpus) : sched::speed_of(host, gpus);
}

Progress progress_of(const registry::Job& job, const std::vector<registry::AttemptRecord>& attempts,
                     const std::vector<registry::Checkpoint>& checkpoints, const std::vector<sched::HostFacts>& hosts,
                     WallTime now) {
  Progress progress;
  double ran = 0, done = 0;
  for (const registry::AttemptRecord& one : attempts) {
    if (!one.started_at || !one.ended_at) continue;
    ran += between(*one.started_at, *one.ended_at);
    done += between(*one.started_at, *one.ended_at) * speed_on(hosts, one.provider, job.spec);
  }
  const job::State& state = job.machine;
  if (ran > 0 && state.head.value != 0) progress.saved = done * std::max(0.0, 1 - seconds(state.lost) / ran);
  const job::Attempt* attempt = state.attempt();
  if (attempt != nullptr && attempt->started_at) {
    const double speed = speed_on(hosts, attempt->lead().host, job.spec);
    const double upload = seconds(measured_cost(checkpoints, {}, {}).upload);
    const double in_all = between(*attempt->started_at, now);
    const double safe =
        attempt->last_saved_at ? std::max(0.0, between(*attempt->started_at, *attempt->last_saved_at) - upload) : 0;
    progress.saved += safe * speed;
    progress.unsaved = std::max(0.0, in_all - safe) * speed;
  }
  if (job.spec.workload.work) progress.total = sched::task_of(job.spec).work;
  const std::optional<double> share = told_share(state, checkpoints);
  // Measured values correct declared ones.
  if (share && *share >= k_share_min && progress.saved > 0) progress.total = progress.saved / *share;
  else if (share && progress.total) progress.saved = *share * *progress.total;
  return progress;
}

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
