// SPDX-License-Identifier: Apache-2.0
// Words that the commands of an owner share.
#pragma once

#include <optional>
#include <string>

#include "cmd/command.hpp"
#include "wire/guest.hpp"

namespace gridctl::cmd {

// Minutes of the day, local time.
struct Hours {
  int from = 0, to = 0;
};
// Reads --hours. usage: not FROM-TO.
[[nodiscard]] Result<std::optional<Hours>> hours_of(const Parsed& parsed);
// Puts what --hours, --egress and --reclaim say into `terms`, and leaves the rest. Errors: usage.
[[nodiscard]] Result<void> describe_terms(const Parsed& parsed, wire::GuestTerms& terms);
inline constexpr std::string_view k_egress_words = "filtered|open|none";
// "23:00-07:00", or "always".
[[nodiscard]] std::string hours_text(const wire::GuestTerms& terms);

}  // namespace gridctl::cmd
