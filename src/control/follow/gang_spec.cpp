// SPDX-License-Identifier: Apache-2.0
#include "control/follow/gang_spec.hpp"

#include "job/rank_start.hpp"
#include "sched/ranks.hpp"

namespace gridctl::control {

std::optional<wire::Gang> gang_of(const job::Spec& spec, const std::string& run, const GangFacts& facts,
                                  std::size_t position) {
  wire::Gang gang;
  gang.node_rank = static_cast<std::uint32_t>(position);
  gang.launcher = std::string(job::launcher_name(spec.launcher));
  gang.self_starting = sched::starts_ranks_itself(run);
  gang.port = static_cast<std::uint16_t>(job::gang_port(facts.job, facts.epoch, facts.ports_skipped));
  gang.ports = job::k_gang_ports;
  gang.restarts = static_cast<std::uint32_t>(facts.restarts);
  gang.spares = static_cast<std::uint32_t>(spec.gang.spares);
  gang.token = facts.token;
  const bool alone = facts.hosts.size() == 1;
  for (const GangHostFacts& host : facts.hosts)
    gang.members.push_back({host.name, alone ? "127.0.0.1" : host.address,
                            static_cast<std::uint32_t>(sched::ranks_on_host(spec, host.gpus))});
  if (gang.world_size() == 1) return std::nullopt;
  return gang;
}

}  // namespace gridctl::control
