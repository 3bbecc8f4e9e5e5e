// SPDX-License-Identifier: Apache-2.0
#include "control/copies/copy_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sched/residency.hpp"

namespace gridctl::control {

namespace {

using PlacesOf = std::map<registry::CheckpointRef, std::set<std::string>>;  // the places that have it

PlacesOf by_checkpoint(const std::vector<registry::Copy>& copies) {
  PlacesOf places;
  for (const registry::Copy& copy : copies) places[{copy.job, copy.seq}].insert(copy.place);
  return places;
}

registry::CheckpointRef ref_of(const registry::CopyWanted& wanted) {
  return {wanted.checkpoint.job, wanted.checkpoint.seq};
}

// The places that should take it, given those that have it.
std::vector<std::string> takers(const std::vector<PlaceOffer>& places, const std::set<std::string>& having,
                                const registry::CopyWanted& wanted) {
  std::set<std::string> domains;
  for (const PlaceOffer& place : places)
    if (having.contains(place.name)) domains.insert(place.failure_domain);
  std::vector<std::string> chosen;
  for (const bool in_trouble : {false, true})
    for (const PlaceOffer& place : places) {
      if (place.in_trouble != in_trouble || domains.contains(place.failure_domain)) continue;
      if (static_cast<int>(domains.size()) + 1 >= wanted.copies) return chosen;
      if (!copy_refusal(wanted, place).empty()) continue;
      domains.insert(place.failure_domain);
      chosen.push_back(place.name);
    }
  return chosen;
}

}  // namespace

std::string copy_refusal(const registry::CopyWanted& wanted, const PlaceOffer& place) {
  return sched::residency_refusal(wanted.constraints, place.region, place.lent);
}

std::vector<RefusedJob> refused_at(const PlaceOffer& place, const std::vector<registry::CopyWanted>& newest_first) {
  std::vector<RefusedJob> refused;
  std::set<std::string> seen;
  for (const registry::CopyWanted& wanted : newest_first) {
    if (wanted.copies <= 1 || !seen.insert(wanted.checkpoint.job.value).second) continue;
    if (std::string why = copy_refusal(wanted, place); !why.empty())
      refused.push_back({wanted.checkpoint.job, std::move(why)});
  }
  return refused;
}

std::vector<registry::CopyWanted> due_at(const std::string& place, const std::vector<PlaceOffer>& places,
                                         const std::vector<registry::CopyWanted>& newest_first,
                                         const std::vector<registry::Copy>& copies) {
  const PlacesOf there = by_checkpoint(copies);
  std::vector<registry::CopyWanted> due;
  for (const registry::CopyWanted& wanted : newest_first) {
    if (wanted.copies <= 1) continue;
    const auto having = there.find(ref_of(wanted));
    const auto chosen = takers(places, having == there.end() ? std::set<std::string>() : having->second, wanted);
    if (std::find(chosen.begin(), chosen.end(), place) != chosen.end()) due.push_back(wanted);
  }
  return due;
}

std::vector<registry::CopyWanted> missing_at(const PlaceOffer& place,
                                             const std::vector<registry::CopyWanted>& newest_first,
                                             const std::vector<registry::Copy>& copies) {
  const PlacesOf there = by_checkpoint(copies);
  std::vector<registry::CopyWanted> missing;
  for (const registry::CopyWanted& wanted : newest_first) {
    const auto having = there.find(ref_of(wanted));
    const bool has = having != there.end() && having->second.contains(place.name);
    if (!has && copy_refusal(wanted, place).empty()) missing.push_back(wanted);
  }
  return missing;
}

std::vector<registry::Copy> obsolete_at(const std::string& place, const std::vector<registry::CheckpointRef>& kept,
                                        const std::vector<registry::Copy>& copies) {
  const std::set<registry::CheckpointRef> all(kept.begin(), kept.end());
  std::vector<registry::Copy> obsolete;
  for (const registry::Copy& copy : copies)
    if (copy.place == place && !all.contains({copy.job, copy.seq})) obsolete.push_back(copy);
  return obsolete;
}

}  // namespace gridctl::control
