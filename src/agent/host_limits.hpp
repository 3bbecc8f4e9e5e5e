// SPDX-License-Identifier: Apache-2.0
// Computes the remaining limits of an attempt, by the host's boot clock. Pure; the agent writes them into the attempt's
// control folder, the supervisor enforces them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

inline constexpr std::uint64_t k_limits_bytes = 4096;  // of their file

struct HostLimits {
  std::optional<BootTime> run_until{};  // may run until then, or:
  std::optional<Duration> run_for{};    // so long from when its program runs
  std::string run_limit{};              // which limit that is
  std::optional<BootTime> time_until{};
  bool operator==(const HostLimits&) const = default;
};

// Returns the limits in a START: nothing runs yet.
[[nodiscard]] HostLimits limits_at_start(const wire::Allowance& allowance, BootTime echo);
// Returns the limits in a renewal, as of `echo`.
[[nodiscard]] HostLimits limits_from(const wire::Allowance& allowance, BootTime echo);

struct LimitDue {
  BootTime at;
  std::string limit;  // "max_duration", "budget", "month_budget", "deadline"
  bool operator==(const LimitDue&) const = default;
};
// Returns the limit that comes first; `running_since`: nullopt if the program does not run yet.
[[nodiscard]] std::optional<LimitDue> due_of(const HostLimits& limits, std::optional<BootTime> running_since);
// Returns the remaining running time; -1: it is not limited.
[[nodiscard]] std::int64_t allowed_ms(const HostLimits& limits, std::optional<BootTime> running_since, BootTime now);
// Returns whether the two are equal, apart from the messages' transit times.
[[nodiscard]] bool nearly_equal(const HostLimits& one, const HostLimits& other);

[[nodiscard]] std::string to_text(const HostLimits& limits);
[[nodiscard]] std::optional<HostLimits> parse_limits(std::string_view text);

}  // namespace gridctl::agent
