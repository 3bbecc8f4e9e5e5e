// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/free_capacity.hpp"

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "control/fleet/host_facts.hpp"

namespace gridctl::control {

job::Member member_of(const sched::Placement& placement) {
  return {0,
          placement.host,
          placement.engine,
          placement.gpu_uuids,
          placement.cpus,
          placement.memory_bytes,
          placement.price_per_hour};
}

bool is_same_machine(const NamedMachine& a, const NamedMachine& b) {
  if (a.provider->name == b.provider->name) return true;
  const auto boot = [](const NamedMachine& m) { return m.boot_id.empty() ? m.provider->inventory->boot_id : m.boot_id; };
  const std::string& machine = a.provider->inventory->machine_id;
  return !machine.empty() && machine == b.provider->inventory->machine_id && !boot(a).empty() && boot(a) == boot(b);
}

bool is_same_provider(const NamedMachine& a, const NamedMachine& b) {
  if (a.provider->name == b.provider->name) return true;
  return is_same_machine(a, b) && a.provider->host == b.provider->host && a.provider->port == b.provider->port;
}

std::vector<sched::HostFacts> facts_now(const std::vector<HostNow>& hosts, const std::vector<Claim>& claims) {
  std::set<std::pair<std::string, std::uint64_t>> ours;
  std::map<std::string_view, std::vector<const Claim*>> claims_on;       // by name of the host
  std::map<std::string_view, std::vector<const HostNow*>> with_machine;  // by its id: names of one machine share it
  for (const Claim& claim : claims) {
    ours.emplace(claim.job.value, claim.epoch.value);
    if (claim.member != nullptr) claims_on[claim.member->host.value].push_back(&claim);
  }
  for (const HostNow& host : hosts) with_machine[host.provider->inventory->machine_id].push_back(&host);
  std::vector<sched::HostFacts> all;
  for (const HostNow& host : hosts) {
    sched::HostFacts facts = facts_of(*host.provider);
    facts.reachable = host.reachable;
    if (host.until) facts.until = host.until;
    const auto divide_with = [&](const HostNow& other) {
      if (!is_same_machine(host, other)) return;
      facts.drained = facts.drained || (other.provider->drained && is_same_provider(host, other));
      if (const auto found = claims_on.find(other.provider->name.value); found != claims_on.end())
        for (const Claim* claim : found->second)
          sched::take_away(facts, claim->member->gpu_uuids, claim->member->cpus, claim->member->memory_bytes);
    };
    if (const std::string& machine = host.provider->inventory->machine_id; machine.empty()) divide_with(host);
    else
      for (const HostNow* other : with_machine.at(machine)) divide_with(*other);
    if (host.held != nullptr)
      for (const wire::HeldShare& share : *host.held)
        if (share.job.empty() || !ours.contains({share.job.value, share.epoch.value}))
          sched::take_away(facts, share.gpu_uuids, share.cpus, share.memory_bytes);
    if (host.full) {
      facts.cpus_free = 0;
      for (const Gpu& gpu : facts.inventory->gpus) facts.busy_gpus.push_back(gpu.uuid);
    }
    all.push_back(std::move(facts));
  }
  return all;
}

}  // namespace gridctl::control
