// SPDX-License-Identifier: Apache-2.0
// Checks whether a daemon follows the jobs of a state directory: listings are only as new as what it last saw.
#pragma once

#include <string>

#include "base/result.hpp"
#include "cmd/context.hpp"
#include "registry/job_records.hpp"

namespace gridctl::cmd {

// Warns on standard error, before a listing, that nothing follows unfinished jobs, and what to do about it.
[[nodiscard]] Result<void> warn_unfollowed(Context& context, registry::JobRecords& registry);

// Returns true while a daemon of this state directory asks its hosts for their state.
[[nodiscard]] bool is_followed(const Context& context);
// Returns the state of a host, as far as it is known today: "answered" for one that did when it was last asked, if
// nothing has asked it since.
[[nodiscard]] std::string liveness_today(const registry::Provider& provider, bool followed, WallTime now);

}  // namespace gridctl::cmd
