// SPDX-License-Identifier: Apache-2.0
#include "control/copies/copy_plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "sched/geo/residency.hpp"

namespace gridctl::control {

namespace {

using RemotesOf = std::map<registry::CheckpointRef, std::set<std::string>>;  // the remotes that have it

RemotesOf by_checkpoint(const std::vector<registry::Copy>& copies) {
  RemotesOf remotes;
  for (const registry::Copy& copy : copies) remotes[{copy.job, copy.seq}].insert(copy.remote);
  return remotes;
}

registry::CheckpointRef ref_of(const registry::CopyWanted& wanted) {
  return {wanted.checkpoint.job, wanted.checkpoint.seq};
}

// Returns the remotes that should get the checkpoint, given those that have it.
std::vector<std::string> takers(const std::vector<RemoteOffer>& remotes, const std::set<std::string>& having,
                                const registry::CopyWanted& wanted) {
  std::set<std::string> domains;
  for (const RemoteOffer& remote : remotes)
    if (having.contains(remote.name)) domains.insert(remote.failure_domain);
  std::vector<std::string> chosen;
  for (const bool in_trouble : {false, true})
    for (const RemoteOffer& remote : remotes) {
      if (remote.in_trouble != in_trouble || domains.contains(remote.failure_domain)) continue;
      if (static_cast<int>(domains.size()) + 1 >= wanted.copies) return chosen;
      if (!copy_refusal(wanted, remote).empty()) continue;
      domains.insert(remote.failure_domain);
      chosen.push_back(remote.name);
    }
  return chosen;
}

}  // namespace

std::string copy_refusal(const registry::CopyWanted& wanted, const RemoteOffer& remote) {
  return sched::residency_refusal(wanted.constraints, remote.region, remote.lent);
}

std::vector<RefusedJob> refused_at(const RemoteOffer& remote, const std::vector<registry::CopyWanted>& newest_first) {
  std::vector<RefusedJob> refused;
  std::set<std::string> seen;
  for (const registry::CopyWanted& wanted : newest_first) {
    if (wanted.copies <= 1 || !seen.insert(wanted.checkpoint.job.value).second) continue;
    if (std::string why = copy_refusal(wanted, remote); !why.empty())
      refused.push_back({wanted.checkpoint.job, std::move(why)});
  }
  return refused;
}

std::vector<registry::CopyWanted> due_at(const std::string& remote, const std::vector<RemoteOffer>& remotes,
                                         const std::vector<registry::CopyWanted>& newest_first,
                                         const std::vector<registry::Copy>& copies) {
  const RemotesOf there = by_checkpoint(copies);
  std::vector<registry::CopyWanted> due;
  for (const registry::CopyWanted& wanted : newest_first) {
    if (wanted.copies <= 1) continue;
    const auto having = there.find(ref_of(wanted));
    const auto chosen = takers(remotes, having == there.end() ? std::set<std::string>() : having->second, wanted);
    if (std::find(chosen.begin(), chosen.end(), remote) != chosen.end()) due.push_back(wanted);
  }
  return due;
}

std::vector<registry::CopyWanted> missing_at(const RemoteOffer& remote,
                                             const std::vector<registry::CopyWanted>& newest_first,
                                             const std::vector<registry::Copy>& copies) {
  const RemotesOf there = by_checkpoint(copies);
  std::vector<registry::CopyWanted> missing;
  for (const registry::CopyWanted& wanted : newest_first) {
    const auto having = there.find(ref_of(wanted));
    const bool has = having != there.end() && having->second.contains(remote.name);
    if (!has && copy_refusal(wanted, remote).empty()) missing.push_back(wanted);
  }
  return missing;
}

std::vector<registry::Copy> obsolete_at(const std::string& remote, const std::vector<registry::CheckpointRef>& kept,
                                        const std::vector<registry::Copy>& copies) {
  const std::set<registry::CheckpointRef> all(kept.begin(), kept.end());
  std::vector<registry::Copy> obsolete;
  for (const registry::Copy& copy : copies)
    if (copy.remote == remote && !all.contains({copy.job, copy.seq})) obsolete.push_back(copy);
  return obsolete;
}

}  // namespace gridctl::control
