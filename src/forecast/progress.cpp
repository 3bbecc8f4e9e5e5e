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
    return {count, count == 0 ? 0 : static_cast<double>(count) * cycle + pace.upload};
  }
  Saved saved;
  std::uint64_t fetching = 1;
  for (double begins = cycle; begins + pace.upload <= elapsed;) {
    begins += pace.upload;
    saved = {fetching, begins};
    const std::uint64_t newest = taken_by(begins);
    if (newest == fetching) break;  // the last one is safe
    fetching = newest;
  }
  return saved;
}

}  // namespace gridctl::forecast
