// SPDX-License-Identifier: Apache-2.0
#include "plan/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gridctl::plan {

namespace {
constexpr int k_rounds = 2000;
constexpr double k_converged = 1e-9;
constexpr double k_few = 8;            // so many runs hold coefficients only half as freely as many do
constexpr double k_share_min = 0.003;  // of a run's time, for terms that no run has

// Fits one factor for all coefficients: least squares of relative errors, then again without the outliers.
double common_factor(std::span<const TimedRun> runs, const Terms& prior) {
  std::vector<double> ratios;
  for (const TimedRun& run : runs) ratios.push_back(run.seconds / std::max(dot(run.terms, prior), 1e-12));
  std::ranges::sort(ratios);
  const std::size_t middle = ratios.size() / 2;
  return ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
}
}  // namespace

Terms fit_terms(std::span<const TimedRun> runs, const Terms& prior, double strength) {
  if (runs.empty()) return prior;
  Terms center = prior;
  const double factor = common_factor(runs, prior);
  for (double& value : center) value *= factor;
  // Solves in units of the centre: x = 1 everywhere is the scaled prior. Rows are relative, so that a long run weighs
  // no more.
  std::vector<Terms> rows;
  for (const TimedRun& run : runs) {
    Terms row{};
    for (std::size_t i = 0; i < k_terms; ++i) row[i] = run.terms[i] * center[i] / run.seconds;
    rows.push_back(row);
  }
  // A coefficient is held back by the change of its share of the time, not by its ratio: a term that is a hundredth of
  // the prior's time may well be a fifth of the truth.
  const double held = strength * (1 + k_few / static_cast<double>(runs.size()));
  Terms hold{};
  for (std::size_t i = 0; i < k_terms; ++i) {
    double share = k_share_min;
    for (const Terms& row : rows) share = std::max(share, row[i]);
    hold[i] = held * share * share;
  }
  Terms x;
  x.fill(1);
  std::vector<double> residual(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) residual[r] = dot(rows[r], x) - 1;
  for (int round = 0; round < k_rounds; ++round) {
    double moved = 0;
    for (std::size_t i = 0; i < k_terms; ++i) {
      double gradient = hold[i] * (x[i] - 1), curvature = hold[i];
      for (std::size_t r = 0; r < rows.size(); ++r) {
        gradient += rows[r][i] * residual[r];
        curvature += rows[r][i] * rows[r][i];
      }
      if (curvature <= 0) continue;
      const double next = std::max(0.0, x[i] - gradient / curvature), step = next - x[i];
      x[i] = next;
      moved = std::max(moved, std::abs(step));
      for (std::size_t r = 0; r < rows.size(); ++r) residual[r] += rows[r][i] * step;
    }
    if (moved < k_converged) break;
  }
  for (std::size_t i = 0; i < k_terms; ++i) x[i] *= center[i];
  return x;
}

namespace {
// Finds the base and overhead that minimise the weighted squares of relative errors, with two rows for the prior.
MemoryConstants weighted_fit(std::span<const MeasuredPeak> peaks, std::span<const double> weights,
                             const MemoryConstants& prior) {
  constexpr double k_unit = 10e9, k_weight = 0.1;  // base in units of 10 GB; a tenth of a run each
  double aa = k_weight, ab = 0, bb = k_weight, ay = k_weight * prior.base / k_unit, by = k_weight * prior.overhead;
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    const double a = k_unit / peaks[i].peak, b = peaks[i].allocated / peaks[i].peak, w = weights[i];
    aa += w * a * a;
    ab += w * a * b;
    bb += w * b * b;
    ay += w * a;
    by += w * b;
  }
  MemoryConstants out;
  out.overhead = std::clamp((aa * by - ab * ay) / (aa * bb - ab * ab), 0.8, 1.5);
  out.base = std::max(0.0, (ay - ab * out.overhead) / aa) * k_unit;
  if (out.base == 0) out.overhead = std::clamp(by / bb, 0.8, 1.5);
  return out;
}
}  // namespace

MemoryConstants fit_memory(std::span<const MeasuredPeak> peaks, const MemoryConstants& prior) {
  // Reweights the runs, so that a run whose figure has another meaning (another allocator, shorter texts) does not
  // distort the fit.
  constexpr double k_tolerated = 0.05;
  std::vector<double> weights(peaks.size(), 1);
  MemoryConstants out = prior;
  for (int round = 0; round < 20 && !peaks.empty(); ++round) {
    out = weighted_fit(peaks, weights, prior);
    for (std::size_t i = 0; i < peaks.size(); ++i) {
      const double off = (out.base + out.overhead * peaks[i].allocated) / peaks[i].peak - 1;
      weights[i] = 1 / std::max(1.0, std::abs(off) / k_tolerated);
    }
  }
  return out;
}

}  // namespace gridctl::plan
