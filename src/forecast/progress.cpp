// SPDX-License-Identifier: Apache-2.0
#include "forecast/progress.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::forecast {

namespace {
constexpr double k_rounding = 1e-9;  // relative: what ends with a whole interval takes no checkpoint more
}

std::uint64_t Pace::checkpoints() const {
  if (!std::isfinite(interval)) return 0;
  return static_cast<std::uint64_t>(std::max(0.0, std::ceil(need / interval * (1 - k_rounding)) - 1));
}

Saved saved_after(const Pace& pace, double elapsed) {
  const std::uint64_t most = pace.checkpoints();
  if (most == 0) return {};
  const double cycle = pace.interval + pace.stall;
  const auto taken_by = [&](double at) {
    return std::min(most, static_cast<std::uint64_t>(std::max(0.0, std::floor(at / cycle * (1 + k_rounding)))));
  };
  if (pace.upload <= cycle) {
    const std::uint64_t count = taken_by(elapsed - pace.upload);
    if (count == 0) return {};
    return {count, static_cast<double>(count) * cycle + pace.upload, static_cast<double>(count) * pace.interval};
  }
  Saved saved;
  std::uint64_t fetching = 1;
  for (double begins = cycle; begins + pace.upload <= elapsed;) {
    begins += pace.upload;
    saved = {fetching, begins, static_cast<double>(fetching) * pace.interval};
    const std::uint64_t newest = taken_by(begins);
    if (newest == fetching) break;  // the last one is safe
    fetching = newest;
  }
  return saved;
}

Saved saved_soon(const Pace& pace, double elapsed, double soon) {
  const double cycle = pace.interval + pace.stall;
  const double taken =
      std::min(std::floor(elapsed / cycle * (1 + k_rounding)), static_cast<double>(pace.checkpoints()));
  const double last = taken > 0 ? taken * cycle : 0;
  const double begins = std::min(std::max(elapsed, last + soon), last + pace.interval);
  const double whole = begins + pace.stall;
  double link_free = 0;
  if (const Saved before = saved_after(pace, whole); static_cast<double>(before.count) < taken)
    link_free = (pace.upload <= cycle ? last : before.count == 0 ? cycle : before.safe_at) + pace.upload;
  const double safe_at = std::max(whole, link_free) + pace.upload;
  if (safe_at >= pace.end()) return {};
  const double work = begins - last + (taken > 0 ? taken * pace.interval : 0);
  return {static_cast<std::uint64_t>(taken) + 1, safe_at, work};
}

}  // namespace gridctl::forecast
