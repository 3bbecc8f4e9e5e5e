// SPDX-License-Identifier: Apache-2.0
// Words by which a user describes a host: `provider register` and `provider set` take the same ones.
#pragma once

#include "cmd/command.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

inline constexpr std::string_view k_host_classes = "datacenter|cloud|market|home";

// Begins a provider: its NAME and --identity, --jump. Errors: usage.
[[nodiscard]] Result<registry::Provider> provider_to_reach(const Parsed& parsed, WallTime now);
// Puts what --price, --gpu, --region, --site, --class and --label say into `provider`, and leaves the rest. A label
// without a value (`K=`) is removed. Errors: usage.
[[nodiscard]] Result<void> describe(const Parsed& parsed, registry::Provider& provider);

}  // namespace gridctl::cmd
