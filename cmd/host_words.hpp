// SPDX-License-Identifier: Apache-2.0
// Reads the words with which a user describes a host: `provider register` and `provider set` accept the same ones.
#pragma once

#include <cstdint>
#include <optional>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

inline constexpr std::string_view k_host_classes = "datacenter|cloud|market|home";

// Makes a provider from its NAME and --identity, --jump. Errors: usage.
[[nodiscard]] Result<registry::Provider> provider_to_reach(const Parsed& parsed, WallTime now);
// Writes the values of --price, --gpu, --region, --site, --class and --label into `provider`, and leaves the rest. A
// label without a value (`K=`) is removed. Errors: usage.
[[nodiscard]] Result<void> describe(const Parsed& parsed, registry::Provider& provider);
// Reads --traffic and --minimum, before anything is changed. usage: one is no price.
struct AgreedOptions {
  std::optional<std::int64_t> traffic_micro, minimum_micro;
};
[[nodiscard]] Result<AgreedOptions> parse_agreed(const Parsed& parsed);
// Accepts what the owner of a lent host asks up to `usd` an hour, and up to --traffic and --minimum. Errors: usage.
[[nodiscard]] Result<void> agree_on_price(const Context& context, const registry::Provider& provider, double usd, const AgreedOptions& agreed);
// Accepts "18:00" (the next one on this machine's clock), "+4h", "2026-11-28T18:00:00Z", or "none". Fails with usage
// for another word, or for an instant that has passed. `option` is for that message.
[[nodiscard]] Result<std::optional<WallTime>> moment_typed(std::string_view option, const std::string& text, WallTime now);

inline constexpr Duration k_way_timeout = std::chrono::minutes{2};  // login, upload of the agent, inventory

// `address` with --identity and --jump, or else the keys of the first way.
[[nodiscard]] Result<registry::Way> way_typed(const Parsed& parsed, const registry::Provider& provider,
                                              const std::string& address);
// Logs in by it: it leads to the same machine. `again`: the command, for the hint about an unknown host key.
[[nodiscard]] Result<registry::Way> new_way(Context& context, registry::HostRecords& registry,
                                            const registry::Provider& provider, registry::Way typed,
                                            const std::string& host_key, const std::string& again);

}  // namespace gridctl::cmd
