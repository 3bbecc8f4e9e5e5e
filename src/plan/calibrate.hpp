// SPDX-License-Identifier: Apache-2.0
// Fits coefficients to measured runs: weighted non-negative least squares, with the shipped values as prior. Pure.
#pragma once

#include <span>

#include "plan/memory.hpp"
#include "plan/timing.hpp"

namespace gridctl::plan {

struct TimedRun {
  Terms terms{};  // seconds at full rates
  double seconds = 0;
};
// Minimises the sum of squared relative errors. First, all coefficients of the prior are scaled by one factor; then
// each is moved from there, less for fewer runs (`strength` of the prior counts as so many runs). Without runs, nothing
// changes.
[[nodiscard]] Terms fit_terms(std::span<const TimedRun> runs, const Terms& prior, double strength = 0.3);

struct MeasuredPeak {
  double allocated = 0;  // bytes, as predicted without the constants
  double peak = 0;       // bytes, as measured
};
// Fits base and overhead by least squares of relative errors, near the prior while runs are few or similar. The base is
// never negative, the overhead between 0.8 and 1.5.
[[nodiscard]] MemoryConstants fit_memory(std::span<const MeasuredPeak> peaks, const MemoryConstants& prior);

}  // namespace gridctl::plan
