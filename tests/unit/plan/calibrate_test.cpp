// SPDX-License-Identifier: Apache-2.0
#include "plan/calibrate.hpp"

#include <gtest/gtest.h>

namespace gridctl::plan::calibrate_test {
namespace {

std::vector<TimedRun> runs_of(const Terms& truth, int count) {
  std::vector<TimedRun> runs;
  for (int i = 0; i < count; ++i) {
    TimedRun run;
    for (std::size_t t = 0; t < k_terms; ++t)
      run.terms[t] = 0.1 + 0.9 * static_cast<double>((i * 7 + static_cast<int>(t) * 5) % 11) / 10;
    run.seconds = dot(run.terms, truth);
    runs.push_back(run);
  }
  return runs;
}

TEST(FitTerms, FindsTheCoefficientsThatMadeTheTimes) {
  Terms prior, truth;
  prior.fill(1);
  truth.fill(1);
  truth[0] = 3;
  truth[4] = 0;
  const std::vector<TimedRun> runs = runs_of(truth, 44);
  const Terms fitted = fit_terms(runs, prior, 1e-4);
  for (const TimedRun& run : runs) EXPECT_NEAR(dot(run.terms, fitted) / run.seconds, 1, 0.01);
  for (const double value : fitted) EXPECT_GE(value, 0);
  EXPECT_NEAR(fitted[0], 3, 0.3);
}

TEST(FitTerms, OneRunScalesThePriorAndNoneLeavesIt) {
  Terms prior;
  prior.fill(2);
  EXPECT_EQ(fit_terms({}, prior), prior);
  TimedRun run;
  run.terms.fill(1);
  run.seconds = 44;
  const Terms fitted = fit_terms(std::vector{run}, prior);
  for (const double value : fitted) EXPECT_NEAR(value, 4, 1e-6);
}

TEST(FitMemory, FindsBaseAndOverheadAndIsNotPulledByOneOddRun) {
  std::vector<MeasuredPeak> peaks;
  for (int i = 1; i <= 20; ++i) peaks.push_back({i * 3e9, 5e9 + 1.1 * i * 3e9});
  peaks.push_back({30e9, 90e9});
  const MemoryConstants fitted = fit_memory(peaks, {2e9, 1.0});
  EXPECT_NEAR(fitted.base, 5e9, 0.5e9);
  EXPECT_NEAR(fitted.overhead, 1.1, 0.03);
}

}  // namespace
}  // namespace gridctl::plan::calibrate_test
