// SPDX-License-Identifier: Apache-2.0
#include "control/measure/measuring_budget.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "sched/link_schedule.hpp"
#include "wire/network.hpp"

namespace gridctl::control {

namespace {
constexpr double k_slow = 10e6;  // bits a second: what is measured there, a person waits for
}

std::uint64_t measuring_day_bytes(const registry::Provider& provider, std::optional<double> slowest, bool asked) {
  const auto label = [&](const char* name) {
    const auto found = provider.labels.find(name);
    return found == provider.labels.end() ? std::string() : found->second;
  };
  const std::string measure = label("measure"), metered = label("metered");
  if (is_one_of(measure, {"off"}) || !is_one_of(metered, {"", "no"})) return 0;
  if (const Result<std::uint64_t> size = parse_size(measure); size) return *size;
  if (asked) return k_asked_day_bytes;
  return slowest && *slowest < k_slow ? 0 : sched::k_link_day_bytes;
}

std::uint64_t exchange_bytes(std::initializer_list<std::uint64_t> left) {
  return std::min(wire::k_link_exchange_max, std::min(left) / 2);
}

}  // namespace gridctl::control
