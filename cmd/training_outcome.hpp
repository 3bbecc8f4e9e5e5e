// SPDX-License-Identifier: Apache-2.0
// Compares the measurements of planned trainings that have run with their predictions.
#pragma once

#include <string>
#include <vector>

#include "plan/outcome.hpp"
#include "registry/job_records.hpp"

namespace gridctl::cmd {

// Returns the metrics of the job's newest checkpoint, or nothing if the job reported none.
[[nodiscard]] Result<Metrics> told_by(registry::RunRecords& registry, const registry::Job& job);
// Formats a prediction: "3.4 s a step, 21.6 GB on each GPU, 326000 tokens/s (dp=8 zero=3 mb=1 on 8 x H100 SXM5 80GB)".
[[nodiscard]] std::string predicted_text(const job::Predicted& predicted);
// Formats the measurements: "3.6 s a step (6 % more than predicted), …"; empty if there are none.
[[nodiscard]] std::string measured_text(const job::Predicted& predicted, const Metrics& told);

// Returns the newest trainings that succeeded and reported measurements.
[[nodiscard]] Result<std::vector<plan::FinishedRun>> finished_runs(registry::JobRecords& registry);
// Applies these runs to the question, and notes that in `sources`.
void calibrate(const std::vector<plan::FinishedRun>& runs, plan::Question& question,
               std::vector<std::string>& sources);

}  // namespace gridctl::cmd
