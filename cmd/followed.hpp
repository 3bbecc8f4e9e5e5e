// SPDX-License-Identifier: Apache-2.0
// Whether anybody follows the jobs of a state directory: what listings show is only as new as their follower.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cmd/context.hpp"
#include "registry/registry.hpp"

namespace gridctl::cmd {

// Says on standard error, before a listing, that nobody follows jobs that are not finished, and what to do about it.
[[nodiscard]] Result<void> warn_unfollowed(Context& context, registry::Registry& registry);

// True while a daemon of this state directory asks its hosts how they are.
[[nodiscard]] bool is_followed(const Context& context);
// How a host is, as far as that is known today: "answered" for one that did when it was last asked, and that nobody
// has asked since.
[[nodiscard]] std::string liveness_today(const registry::Provider& provider, bool followed, WallTime now);

}  // namespace gridctl::cmd
