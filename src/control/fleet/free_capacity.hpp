// SPDX-License-Identifier: Apache-2.0
// Computes the free capacity of each host now: its resources, minus those that our jobs hold or were promised, minus
// those of all other users in its ledger. Pure.
#pragma once

#include <string>
#include <vector>

#include "base/ids.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"
#include "sched/place.hpp"
#include "sched/query/host_facts.hpp"
#include "wire/held.hpp"

namespace gridctl::control {

[[nodiscard]] job::Member member_of(const sched::Placement& placement);

// Describes a machine under one of its names, with the boot id that it reported last (or at registration, if empty).
struct NamedMachine {
  const registry::Provider* provider = nullptr;
  std::string boot_id;
};
// Returns true if proven: the same machine id and the same run of its kernel. Cloned images share the former, never the
// latter.
[[nodiscard]] bool is_same_machine(const NamedMachine& a, const NamedMachine& b);
// Returns true for one machine behind one SSH server: two names of one provider, which are drained together. Containers
// with their own servers share a machine, but are drained separately.
[[nodiscard]] bool is_same_provider(const NamedMachine& a, const NamedMachine& b);

struct HostNow : NamedMachine {
  const std::vector<wire::HeldShare>* held = nullptr;  // of its ledger; nullptr: not told
  bool full = false;                                   // it has just refused for want of room
  bool reachable = true;
  std::optional<WallTime> until = {};  // its orderly end
};
// Describes the resources that one of our jobs holds or was promised.
struct Claim {
  JobId job;
  Epoch epoch;                          // 0: a promise
  const job::Member* member = nullptr;  // nullptr: it holds nothing any more, whatever the host told before
};
// Returns the free capacity of each host now. The names of one machine share its capacity; our own current attempts in
// the ledger are not counted twice.
[[nodiscard]] std::vector<sched::HostFacts> facts_now(const std::vector<HostNow>& hosts,
                                                      const std::vector<Claim>& claims);

}  // namespace gridctl::control
