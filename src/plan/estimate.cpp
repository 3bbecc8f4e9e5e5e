// SPDX-License-Identifier: Apache-2.0
#include "plan/estimate.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace gridctl::plan {

namespace {
using OrderedJson = nlohmann::ordered_json;
constexpr double k_cpu_base = 0.4e9;  // bytes of a Python process that has imported torch

// Rounds to six digits, because more would claim unknown precision.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 5 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::string group_key(const Row& row) { return row.group.empty() ? row.cluster.device.name : row.group; }
// Processors have no device context, so that the libraries themselves are the base.
MemoryConstants usual_constants(const Row& row) {
  MemoryConstants out = memory_constants(row.training.framework);
  if (row.cluster.device.gpu_class == GpuClass::cpu) out.base = k_cpu_base;
  return out;
}
std::string kind_key(const Row& row) {
  return std::string(text_of(row.cluster.device.gpu_class)) + "/" + std::string(text_of(row.training.precision));
}
}  // namespace

std::string Estimator::answer(std::string_view line) {
  Result<Row> row = read_row(line);
  if (row) return answer_row(*row);
  ++refused_;
  return OrderedJson{{"error", row.error().message}}.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

// For other GPUs or another precision, a group only shows how much slower its runs are than the shipped figures.
Terms Estimator::coefficients_of(const Group& group, const Row& row, const Terms& shipped) {
  if (const auto kind = group.kinds.find(kind_key(row)); kind != group.kinds.end()) return kind->second.coefficients;
  if (group.ratios.empty()) return shipped;
  std::vector<double> ratios = group.ratios;
  std::nth_element(ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2), ratios.end());
  Terms out = shipped;
  for (double& value : out) value *= ratios[ratios.size() / 2];
  return out;
}

std::string Estimator::answer_row(const Row& row) {
  Group& group = groups_[group_key(row)];
  const Training& training = row.training;
  TimingFacts facts = timing_facts(training, row.cluster);
  Parallelism kept = row.parallelism;  // interleaving that is only assumed costs no memory
  if (!row.stages_said) kept.virtual_stages = 1;
  Memory memory = memory_of(training, facts.memory, kept);
  memory.constants = usual_constants(row);
  if (const auto fitted = group.peaks.find(training.framework); fitted != group.peaks.end())
    memory.constants = fitted->second.constants;
  OrderedJson out{{"params", std::round(facts.memory.count.total)}, {"state_gb", rounded(memory.states() / k_giga)}};
  const double peak = row.memory_known ? memory.peak() : memory.states() + memory.constants.base;
  if (row.memory_known) out["activations_gb"] = rounded(memory.activations / k_giga);
  out["peak_mem_gb"] = rounded(peak / k_giga);
  out["fits"] = peak <= row.cluster.device.memory;
  if (row.time_known) {
    const Terms terms = terms_of(training, facts, row.cluster, row.parallelism);
    const StepTime time = step_time(terms, coefficients_of(group, row, facts.coefficients), training, row.parallelism);
    const double tokens = static_cast<double>(training.batch) * static_cast<double>(training.sequence);
    out["step_time_s"] = rounded(time.seconds);
    out["tokens_per_s_per_gpu"] = rounded(tokens / time.seconds / row.parallelism.gpus());
    out["model_flops"] = rounded(facts.plain.model);
    out["mfu_pct"] = rounded(100 * facts.plain.model /
                             (time.seconds * row.parallelism.gpus() * row.cluster.device.peak(training.precision)));
    out["bubble"] = rounded(time.bubble);
    if (row.calibrate && row.measured_seconds) {
      Kind& kind = group.kinds[kind_key(row)];
      kind.runs.push_back({terms, *row.measured_seconds});
      kind.coefficients = fit_terms(kind.runs, facts.coefficients);
      group.ratios.push_back(*row.measured_seconds / dot(terms, facts.coefficients));
    }
  }
  if (row.calibrate && row.measured_peak) {
    Peaks& peaks = group.peaks[training.framework];
    peaks.runs.push_back({memory.allocated(), *row.measured_peak});
    peaks.constants = fit_memory(peaks.runs, usual_constants(row));
  }
  if (!row.notes.empty()) out["notes"] = row.notes;
  return out.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace gridctl::plan
