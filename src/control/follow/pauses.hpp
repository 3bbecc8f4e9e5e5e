// SPDX-License-Identifier: Apache-2.0
// Handles jobs that are paused in place, and hosts whose owner has paused them.
#pragma once

#include <vector>

#include "control/reach/host_access.hpp"
#include "registry/host_records.hpp"
#include "sched/query/host_facts.hpp"
#include "wire/pause.hpp"

namespace gridctl::control {

// Asks the host to pause an attempt, or to resume it, over a separate connection. Blocks as long as the host needs:
// minutes if much GPU memory moves.
[[nodiscard]] Result<wire::PauseReply> pause_on(const HostAccess& host, const wire::PauseRequest& request);

// Returns lines for the job's history.
[[nodiscard]] job::Record paused_in_place(const job::Attempt& attempt, const HostName& host);
[[nodiscard]] job::Record resumed_in_place(const job::Attempt& attempt, const HostName& host);

// A paused host gets no new jobs until it is released.
[[nodiscard]] Result<void> set_host_paused(registry::HostRecords& records, const HostName& name, bool paused,
                                           WallTime at);
[[nodiscard]] Result<void> apply_pauses(registry::HostRecords& records, std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::control
