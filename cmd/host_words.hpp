// SPDX-License-Identifier: Apache-2.0
// Reads the words with which a user describes a host: `provider register` and `provider set` accept the same ones.
#pragma once

#include <cstdint>
#include <optional>

#include "cmd/command.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

inline constexpr std::string_view k_host_classes = "datacenter|cloud|market|home";

// Makes a provider from its NAME and --identity, --jump. Errors: usage.
[[nodiscard]] Result<registry::Provider> provider_to_reach(const Parsed& parsed, WallTime now);
// Writes the values of --price, --gpu, --region, --site, --class and --label into `provider`, and leaves the rest. A
// label without a value (`K=`) is removed. Errors: usage.
[[nodiscard]] Result<void> describe(const Parsed& parsed, registry::Provider& provider);
// Accepts what the owner of a lent host asks up to `usd` an hour, and up to --traffic and --minimum. Errors: usage.
// Reads --traffic and --minimum, before anything is changed. usage: one is no price.
struct AgreedOptions {
  std::optional<std::int64_t> traffic_micro, minimum_micro;
};
[[nodiscard]] Result<AgreedOptions> parse_agreed(const Parsed& parsed);
[[nodiscard]] Result<void> agree_on_price(const Context& context, const registry::Provider& provider, double usd, const AgreedOptions& agreed);

}  // namespace gridctl::cmd
