// SPDX-License-Identifier: Apache-2.0
#include "cmd/training_outcome.hpp"

#include <cmath>

#include "base/text.hpp"
#include "ui/human.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_runs_kept = 200;  // older ones say little of today's machines and libraries

// Compares two figures in words: "6 % more than predicted".
std::string beside(double measured, double predicted) {
  if (predicted <= 0) return "";
  const double off = 100 * (measured / predicted - 1);
  if (std::abs(off) < 0.5) return " (as predicted)";
  return " (" + ui::number(std::round(std::abs(off)), 3) + " % " + (off > 0 ? "more" : "less") + " than predicted)";
}
}  // namespace

Result<Metrics> told_by(registry::RunRecords& registry, const registry::Job& job) {
  if (job.machine.head.value == 0) return Metrics{};
  Result<registry::Checkpoint> newest = registry.checkpoint(job.id, std::nullopt);
  if (newest) return std::move(newest->metrics);
  if (newest.error().code == Code::not_found) return Metrics{};
  return std::move(newest).error();
}

std::string predicted_text(const job::Predicted& predicted) {
  return ui::number(predicted.step_s, 3) + " s a step, " + ui::number(predicted.peak_bytes / 1e9, 3) +
         " GB on each GPU, " + std::to_string(std::llround(predicted.tokens_per_s)) + " tokens/s (" +
         predicted.layout + " on " + std::to_string(predicted.gpus) + " x " + predicted.gpu + ")";
}

std::string measured_text(const job::Predicted& predicted, const Metrics& told) {
  const plan::Measured measured = plan::measured_of(told);
  std::vector<std::string> parts;
  if (measured.step_s)
    parts.push_back(ui::number(*measured.step_s, 3) + " s a step" + beside(*measured.step_s, predicted.step_s));
  if (measured.peak_bytes)
    parts.push_back(ui::number(*measured.peak_bytes / 1e9, 3) + " GB" +
                    beside(*measured.peak_bytes, predicted.peak_bytes));
  if (measured.tokens_per_s)
    parts.push_back(std::to_string(std::llround(*measured.tokens_per_s)) + " tokens/s" +
                    beside(*measured.tokens_per_s, predicted.tokens_per_s));
  return join(parts, ", ");
}

Result<std::vector<plan::FinishedRun>> finished_runs(registry::JobRecords& registry) {
  TRY_ASSIGN(const std::vector<registry::JobRow> rows, registry.jobs({}));
  std::vector<plan::FinishedRun> out;
  for (const registry::JobRow& row : rows) {
    if (row.state != job::JobState::succeeded) continue;
    if (out.size() == k_runs_kept) break;
    TRY_ASSIGN(const registry::Job job, registry.job(row.id));
    if (!job.spec.workload.predicted) continue;
    TRY_ASSIGN(const Metrics told, told_by(registry, job));
    const plan::Measured measured = plan::measured_of(told);
    if (measured.any()) out.push_back({job.spec.workload.predicted->row, measured});
  }
  return out;
}

void calibrate(const std::vector<plan::FinishedRun>& runs, plan::Question& question,
               std::vector<std::string>& sources) {
  const plan::Learned learned = plan::learn(runs, question.training, question.cluster);
  question.coefficients = learned.coefficients;
  question.constants = learned.constants;
  const auto told = [&](const char* what, std::size_t count) {
    if (count > 0)
      sources.push_back(std::string(what) + ": corrected by " + std::to_string(count) + " of your own runs");
  };
  told("time", learned.timed);
  told("memory", learned.weighed);
}

}  // namespace gridctl::cmd
