// SPDX-License-Identifier: Apache-2.0
// Plans resources and cost of replicating a complete job: a standby, or several twins that run at once. Pure.
#pragma once

#include <string>
#include <vector>

#include "sched/place.hpp"

namespace gridctl::sched {

// States where the twins of a job would run now, each on its own host.
struct TwinPlan {
  int wanted = 1;
  std::vector<Placement> placements;  // the job's own first; fewer than wanted when no other host would do now
  std::string missing{};              // then why, for people
};
// `own`: where the job itself goes. Two names of one machine count as two hosts here: while they answer, they can be
// told apart.
[[nodiscard]] TwinPlan place_twins(const job::Spec& spec, std::vector<HostFacts> hosts, const Decision& own,
                                         const JobKnowledge& known);
// Returns the USD per hour of all placements together.
[[nodiscard]] double price_of(const TwinPlan& plan);
// Returns nothing if the job asks for no replication.
[[nodiscard]] std::vector<std::string> explain(const TwinPlan& plan, const job::Spec& spec, const Decision& own);

}  // namespace gridctl::sched
