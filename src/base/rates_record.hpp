// SPDX-License-Identifier: Apache-2.0
// Stores rates and metered use in records of several rooms.
#pragma once

#include "base/rates.hpp"
#include "base/record.hpp"

namespace gridctl {

template <class R>
void fields(R& r, Of<R, Rates>& m) {
  constexpr std::int64_t none = 0;
  r("gpu_hour", m.gpu_hour, none, k_rate_max)("cpu_hour", m.cpu_hour, none, k_rate_max);
  r("gigabyte", m.gigabyte, none, k_rate_max)("minimum", m.minimum, none, k_rate_max);
}

template <class R>
void fields(R& r, Of<R, MeteredUse>& m) {
  r("gpu_ms", m.gpu_ms, k_metered_ms_max)("cpu_ms", m.cpu_ms, k_metered_ms_max);
  r("bytes_up", m.bytes_up, k_metered_bytes_max)("bytes_down", m.bytes_down, k_metered_bytes_max);
}

}  // namespace gridctl
