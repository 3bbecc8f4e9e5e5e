// SPDX-License-Identifier: Apache-2.0
#include "control/follow/progress.hpp"

#include <algorithm>

#include "control/follow/tuning.hpp"
#include "sched/cost.hpp"

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

}  // namespace gridctl::control
