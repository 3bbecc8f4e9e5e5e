// SPDX-License-Identifier: Apache-2.0
// Compares the figures that runs report with the predicted ones, and learns from them. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/metrics.hpp"
#include "plan/search.hpp"

namespace gridctl::plan {

// Holds figures under the names that jobs give them: step_time_s, tokens_per_s, peak_mem_gb (1e9 bytes, of a GPU).
// step_s is not a step's time, because it leaves out a rank's wait for others.
struct Measured {
  std::optional<double> step_s, tokens_per_s, peak_bytes;
  [[nodiscard]] bool any() const { return step_s || tokens_per_s || peak_bytes; }
};
[[nodiscard]] Measured measured_of(const Metrics& told);

// Holds a finished run: its line for `gridctl plan estimate`, and its reported figures.
struct FinishedRun {
  std::string row;
  Measured measured;
};
// Holds figures fitted to the runs on this class of GPU, with this precision and framework; the shipped ones are the
// prior.
struct Learned {
  std::optional<Terms> coefficients;
  std::optional<MemoryConstants> constants;
  std::size_t timed = 0, weighed = 0;  // runs behind each
};
[[nodiscard]] Learned learn(std::span<const FinishedRun> runs, const Training& training, const Cluster& cluster);

}  // namespace gridctl::plan
