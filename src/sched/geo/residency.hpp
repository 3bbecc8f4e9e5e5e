// SPDX-License-Identifier: Apache-2.0
// Where the data of a job may be: one rule for hosts that run it and for places that keep copies of its checkpoints.
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "job/spec.hpp"

namespace gridctl::sched {

// By strangers: hosts of a market, and those that the user has marked so (label "lent").
[[nodiscard]] bool is_lent(std::string_view host_class, const std::map<std::string, std::string>& labels);

// Why not in this region, for people: "it is in US, wanted DE, FI"; empty when it may. "DE" is "de" and every "DE-…"; a
// region that is not known is refused by whatever is wanted or excluded.
[[nodiscard]] std::string region_refusal(const job::Constraints& wanted, const std::string& region);
// Judges by the sensitivity of the job, too.
[[nodiscard]] std::string residency_refusal(const job::Constraints& wanted, const std::string& region, bool lent);

}  // namespace gridctl::sched
