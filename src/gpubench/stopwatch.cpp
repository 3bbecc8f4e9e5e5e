// SPDX-License-Identifier: Apache-2.0
#include "gpubench/stopwatch.hpp"

#include <algorithm>

#include "os/clock.hpp"

namespace gridctl::gpubench {
namespace {

constexpr double k_steady = 0.02;  // what clocks still do when they have settled
constexpr int k_in_a_row = 3;

}  // namespace

double now_seconds() { return static_cast<double>(os::system_clock().boot().ns) * 1e-9; }

Result<double> time_of(Device& device, const Work& work) {
  const double began = now_seconds();
  TRY(work());
  TRY(device.finish());
  return now_seconds() - began;
}

Result<double> settle(Device& device, const Work& work, double limit_seconds) {
  const double began = now_seconds();
  double last = 0;
  for (int steady = 1; steady < k_in_a_row;) {
    TRY_ASSIGN(const double time, time_of(device, work));
    steady = last > 0 && time < last * (1 + k_steady) && time > last * (1 - k_steady) ? steady + 1 : 1;
    last = time;
    if (now_seconds() - began > limit_seconds) break;
  }
  return last;
}

Result<double> best_of(Device& device, const Work& work, double limit_seconds) {
  const double began = now_seconds();
  double best = 0;
  for (int turn = 0; turn < k_in_a_row || now_seconds() - began < limit_seconds; ++turn) {
    TRY_ASSIGN(const double time, time_of(device, work));
    best = best == 0 ? time : std::min(best, time);
  }
  return best;
}

}  // namespace gridctl::gpubench
