// SPDX-License-Identifier: Apache-2.0
#include "sched/cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.hpp"
#include "sched/catalogue/catalogue.hpp"
#include "sched/interval.hpp"
#include "sched/query/query_fields.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_shown_share = 0.01;  // of the time: smaller parts are not worth a reader's eye

double figure_or(const HostFacts& host, std::string_view name, double fallback) {
  const auto found = host.figures.find(name);
  return found == host.figures.end() ? fallback : found->second;
}

double seconds_for(double bytes, double bytes_per_second) {
  return bytes_per_second > 0 ? bytes / bytes_per_second : 0;
}

// Returns the speed to expect of a device by its catalogue row: the middle of the range that sound devices reach.
double expected_tflops(const GpuModel& model) {
  const std::optional<double> peak = model.bf16 ? model.bf16 : model.fp16;
  if (!peak) return model.fp32.value_or(k_unknown_tflops);
  const Band band = model.gemm_band.value_or(Band{0.6, 0.9});
  return *peak * (band.low + band.high) / 2;
}

double expected_tflops(const Gpu& gpu) {
  static const std::map<std::string_view, double> k_by_key = [] {
    std::map<std::string_view, double> all;
    for (const GpuModel& model : catalogue()) all[model.key] = expected_tflops(model);
    return all;
  }();
  if (const auto known = k_by_key.find(gpu.model); known != k_by_key.end()) return known->second;
  const GpuModel* model = find_model(gpu).model;
  return model == nullptr ? k_unknown_tflops : expected_tflops(*model);
}

// A failure comes every `mtbf` of the total time, and each costs a restart; everything that the model adds beyond that
// is repeated work.
void share_out(Estimate& out, double all, double mtbf, double restart) {
  all = std::min(all, 1e305);  // infinite parts would not add up
  const double extra = std::max(0.0, all - out.work - out.saving);
  out.recovery = std::min(extra, all / mtbf * restart);
  out.lost = extra - out.recovery;
}
}  // namespace

std::string in_words(double seconds) {
  return format_duration(std::chrono::seconds{std::llround(std::clamp(seconds, 0.0, k_never))});
}

Estimate to_finish(const WorkEstimate& task, const HostGroup& group) {
  Estimate out;
  out.price_per_hour = group.price_per_hour;
  out.transfer = seconds_for(task.input_bytes, group.down);
  out.start = group.start;
  out.work = (task.work > 0 ? task.work : k_work_assumed) / group.speed;
  const double restore = seconds_for(task.state_bytes, group.down);
  if (task.resumes) out.transfer += restore;
  const double upload = seconds_for(task.state_bytes, group.up);
  const double stall = task.stall > 0 ? task.stall : seconds(k_stall_assumed);
  if (group.failures_per_hour <= 0 && !task.saves) return out;
  const double mtbf = 3600 / std::max(group.failures_per_hour, 1e-9);
  const double restart = task.silence + group.start + restore;
  if (!task.saves) {
    out.failure = restart + out.work / 2;
    share_out(out, expected_time(out.work, out.work, 0, mtbf, restart), mtbf, restart);
    return out;
  }
  const double low = std::max(seconds(k_interval_min), upload);
  const double high = std::max(low, seconds(task.stall > 0 ? k_interval_max : k_interval_unmeasured_max));
  out.interval = std::clamp(optimal_interval(stall, mtbf), low, high);
  out.saving = out.work / out.interval * stall;
  out.failure = restart + upload + std::min(out.interval, out.work) / 2;
  share_out(out, expected_time(out.work, out.interval, stall, mtbf, restart + upload), mtbf, restart);
  return out;
}

Aim aim_of(job::Optimize optimize, const Estimate& estimate, double failures_per_hour) {
  const double cost = estimate.cost(), time = estimate.takes();
  if (optimize == job::Optimize::time) return {time, cost};
  if (optimize == job::Optimize::reliability) return {failures_per_hour, cost};
  return {cost, time};
}

std::string describe(const Estimate& estimate) {
  const double all = estimate.takes();
  if (estimate.is_never()) return "never: the host fails before the work is done";
  std::vector<std::string> parts;
  for (const auto& [name, part] : {std::pair{"work", estimate.work}, std::pair{"checkpoints", estimate.saving},
                                   std::pair{"repeated work", estimate.lost}, std::pair{"recovery", estimate.recovery},
                                   std::pair{"transfer", estimate.transfer}, std::pair{"start", estimate.start}})
    if (part >= all * k_shown_share) parts.push_back(name + (" " + short_hours(part / 3600)));
  return short_hours(all / 3600) + " (" + join(parts, ", ") + ")";
}

namespace {
// Returns the speed of the hardware that a job names first, or of an A100 when it names none.
double speed_of_first_choice(const job::Spec& spec) {
  if (spec.resources.gpus.empty()) return 1;
  const job::GpuRequest& first = spec.resources.gpus.front();
  const std::vector<const GpuModel*> models =
      first.names.empty() ? std::vector<const GpuModel*>{} : models_named(first.names.front());
  const double each = models.empty() ? k_reference_tflops : expected_tflops(*models.front());
  return each / k_reference_tflops * first.count_min * spec.num_nodes;
}
}  // namespace

WorkEstimate task_of(const job::Spec& spec) {
  WorkEstimate task;
  task.silence = seconds(spec.recovery.lost_after);
  if (spec.workload.work) task.work = seconds(*spec.workload.work) * speed_of_first_choice(spec);
  task.saves = spec.checkpoint.interval != job::CheckpointPolicy::Interval::off;
  return task;
}

double speed_of(const HostFacts& host, const std::vector<const Gpu*>& gpus) {
  if (gpus.empty()) return 1;
  const double measured = figure_or(host, "total_flops", 0);
  double tflops = 0;
  if (measured > 0)
    tflops = measured / static_cast<double>(host.inventory->gpus.size()) * static_cast<double>(gpus.size());
  else
    for (const Gpu* gpu : gpus) tflops += expected_tflops(*gpu);
  return tflops / k_reference_tflops;
}

HostGroup group_of(const HostFacts& host, const std::vector<const Gpu*>& gpus) {
  constexpr double k_mbit = 1e6 / 8;  // bytes
  HostGroup group;
  group.price_per_hour = host.price_per_hour;
  group.speed = speed_of(host, gpus);
  group.failures_per_hour =
      1 / mtbf_hours_of(subject_of(host)) + k_gpu_rate_per_hour * static_cast<double>(gpus.size());
  group.start = figure_or(host, "start_time", group.start);
  group.down = figure_or(host, "inet_down", 0) * k_mbit;
  group.up = figure_or(host, "inet_up", 0) * k_mbit;
  return group;
}

}  // namespace gridctl::sched
