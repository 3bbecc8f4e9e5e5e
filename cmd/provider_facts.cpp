// SPDX-License-Identifier: Apache-2.0
#include "cmd/provider_facts.hpp"

#include "control/fleet/health.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/measure/bench.hpp"

namespace gridctl::cmd {

Result<std::vector<sched::HostFacts>> all_host_facts(registry::Registry& registry, WallTime now) {
  TRY_ASSIGN(const std::vector<registry::Provider> providers, registry.providers());
  std::vector<sched::HostFacts> hosts;
  for (const registry::Provider& provider : providers) hosts.push_back(control::facts_of(provider));
  TRY(control::apply_bench(registry, hosts));
  TRY_ASSIGN(auto links, control::link_figures(registry));
  for (sched::HostFacts& host : hosts) host.figures.merge(links[host.name.value]);
  for (sched::HostFacts& host : hosts) {
    TRY_ASSIGN(const sched::HostStanding standing, control::load_standing(registry, host.name));
    control::apply_standing(host, standing, now);
  }
  TRY_ASSIGN(const std::vector<JobId> unfinished, registry.unfinished());
  for (const JobId& id : unfinished) {
    TRY_ASSIGN(const registry::Job job, registry.job(id));
    const job::Attempt* attempt = job.machine.attempt();
    if (attempt == nullptr) continue;
    for (const job::Member& member : attempt->members)
      for (sched::HostFacts& host : hosts)
        if (host.name == member.host) control::take_away(host, member);
  }
  return hosts;
}

Error nothing_fits(const std::string& job_name, const sched::Decision& decision) {
  if (decision.rejections.empty() && decision.runners_up.empty())
    return make_error(Code::no_provider_fits, "no provider is registered that could run '" + job_name + "'",
                      "gridctl provider register NAME ssh://user@host");
  Error error = make_error(Code::no_provider_fits, "no provider can run '" + job_name + "'", "gridctl provider ls");
  for (const sched::Rejection& rejection : decision.rejections)
    error.context.push_back(rejection.host.value + ": " + rejection.code + ": " + rejection.detail);
  return error;
}

}  // namespace gridctl::cmd
