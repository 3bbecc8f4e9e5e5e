// SPDX-License-Identifier: Apache-2.0
// Ways to registered hosts, as commands add them.
#pragma once

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

inline constexpr Duration k_way_timeout = std::chrono::minutes{2};  // login, upload of the agent, inventory

// `address` with --identity and --jump, or else the keys of the first way.
[[nodiscard]] Result<registry::Way> way_typed(const Parsed& parsed, const registry::Provider& provider,
                                              const std::string& address);
// Logs in by it: it leads to the same machine. `again`: the command, for the hint about an unknown host key.
[[nodiscard]] Result<registry::Way> new_way(Context& context, registry::HostRecords& registry,
                                            const registry::Provider& provider, registry::Way typed,
                                            const std::string& host_key, const std::string& again);

}  // namespace gridctl::cmd
