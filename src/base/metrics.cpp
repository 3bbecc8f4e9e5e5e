// SPDX-License-Identifier: Apache-2.0
#include "base/metrics.hpp"

namespace gridctl {

bool is_metric_name(std::string_view name) {
  constexpr std::string_view k_allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:/-";
  return !name.empty() && name.size() <= 64 && name.find_first_not_of(k_allowed) == std::string_view::npos;
}

}  // namespace gridctl
