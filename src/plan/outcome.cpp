// SPDX-License-Identifier: Apache-2.0
#include "plan/outcome.hpp"

#include <vector>

#include "plan/calibrate.hpp"
#include "plan/estimate.hpp"

namespace gridctl::plan {

Measured measured_of(const Metrics& told) {
  const auto positive = [&](const char* name) {
    const auto found = told.find(name);
    return found == told.end() || !(found->second > 0) ? std::nullopt : std::optional(found->second);
  };
  Measured out;
  out.step_s = positive("step_time_s");
  out.tokens_per_s = positive("tokens_per_s");
  if (const auto peak = positive("peak_mem_gb")) out.peak_bytes = *peak * 1e9;
  return out;
}

Learned learn(std::span<const FinishedRun> runs, const Training& training, const Cluster& cluster) {
  std::vector<TimedRun> timed;
  std::vector<MeasuredPeak> peaks;
  for (const FinishedRun& run : runs) {
    const Result<Row> row = read_row(run.row);
    if (!row || row->training.framework != training.framework) continue;
    if (run.measured.peak_bytes)
      peaks.push_back({memory_of(row->training, row->parallelism).allocated(), *run.measured.peak_bytes});
    const double tokens =
        static_cast<double>(row->training.batch) * static_cast<double>(row->training.sequence);
    const std::optional<double> step = run.measured.step_s         ? run.measured.step_s
                                       : run.measured.tokens_per_s ? std::optional(tokens / *run.measured.tokens_per_s)
                                                                   : std::nullopt;
    if (!step || row->cluster.device.gpu_class != cluster.device.gpu_class ||
        row->training.precision != training.precision)
      continue;
    const TimingFacts facts = timing_facts(row->training, row->cluster);
    timed.push_back({terms_of(row->training, facts, row->cluster, row->parallelism), *step});
  }
  Learned out;
  out.timed = timed.size();
  out.weighed = peaks.size();
  if (!timed.empty())
    out.coefficients = fit_terms(
        timed, shipped_coefficients(cluster.device.gpu_class, training));
  if (!peaks.empty()) out.constants = fit_memory(peaks, memory_constants(training.framework));
  return out;
}

}  // namespace gridctl::plan
