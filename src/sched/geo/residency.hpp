// SPDX-License-Identifier: Apache-2.0
// Decides where the data of a job may be: one rule for hosts that run it and for remotes that keep copies of its
// checkpoints. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "job/spec.hpp"

namespace gridctl::sched {

// Returns true for hosts of strangers: those of a market, and those that the user has marked (label "lent").
[[nodiscard]] bool is_lent(std::string_view host_class, const std::map<std::string, std::string>& labels);

// Returns why not in this region, for people: "it is in US, wanted DE, FI"; empty if allowed. "DE" matches "de" and
// every "DE-…"; an unknown region is refused if any region is wanted or excluded.
[[nodiscard]] std::string region_refusal(const job::Constraints& wanted, const std::string& region);
// Judges by the sensitivity of the job too.
[[nodiscard]] std::string residency_refusal(const job::Constraints& wanted, const std::string& region, bool lent);

}  // namespace gridctl::sched
