// SPDX-License-Identifier: Apache-2.0
// Trainings that were planned and have run: what they told beside what was predicted.
#pragma once

#include <string>
#include <vector>

#include "plan/outcome.hpp"
#include "registry/registry.hpp"

namespace gridctl::cmd {

// Returns the metrics of the job's newest checkpoint; empty when it reported none.
[[nodiscard]] Result<Metrics> told_by(registry::Registry& registry, const registry::Job& job);
// "3.4 s a step, 21.6 GB on each GPU, 326000 tokens/s (dp=8 zero=3 mb=1 on 8 x H100 SXM5 80GB)"
[[nodiscard]] std::string predicted_text(const job::Predicted& predicted);
// "3.6 s a step (6 % more than predicted), …"; empty when nothing was told.
[[nodiscard]] std::string measured_text(const job::Predicted& predicted, const Metrics& told);

// The newest trainings that succeeded and told something.
[[nodiscard]] Result<std::vector<plan::FinishedRun>> finished_runs(registry::Registry& registry);
// Puts what they teach into the question; says so in `sources`.
void calibrate(const std::vector<plan::FinishedRun>& runs, plan::Question& question,
               std::vector<std::string>& sources);

}  // namespace gridctl::cmd
