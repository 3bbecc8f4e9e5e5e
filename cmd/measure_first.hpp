// SPDX-License-Identifier: Apache-2.0
// Measures links for `job submit` before a job on several hosts is placed, and warns about what borrowed hosts see or
// make different.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cmd/context.hpp"
#include "registry/host_records.hpp"
#include "sched/gang.hpp"

namespace gridctl::cmd {

// Returns the hosts whose links decide where the gang goes, and were not all measured (`again`: or were); empty:
// nothing need be measured.
[[nodiscard]] std::set<std::string> hosts_to_measure(const sched::GangDecision& gang, const sched::GangWish& wish,
                                                     const sched::Decision& member, bool again);
// Measures the links between these hosts for some seconds and shows the progress; `again`: including those measured
// before. A failed measurement leaves the rate unknown, and forbids nothing.
void measure_between(Context& context, registry::HostRecords& registry, std::set<std::string> hosts, bool again);

// Returns a warning about members on borrowed hosts, which exchange everything unencrypted; empty: there are none.
[[nodiscard]] std::string clear_text_warning(const sched::GangDecision& gang,
                                             const std::vector<sched::HostFacts>& hosts);
// Returns a warning that `interval: off` does not hold on borrowed hosts that would suit the job; empty: it holds.
[[nodiscard]] std::string compulsory_checkpoints_warning(const job::Spec& spec, const sched::Decision& decision,
                                                         const std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::cmd
