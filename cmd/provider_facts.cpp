// SPDX-License-Identifier: Apache-2.0
#include "cmd/provider_facts.hpp"

#include <algorithm>

namespace gridctl::cmd {

namespace {
void take_away(sched::HostFacts& host, const job::Member& member) {
  host.busy_gpus.insert(host.busy_gpus.end(), member.gpu_uuids.begin(), member.gpu_uuids.end());
  host.cpus_free = std::max(0.0, host.cpus_free.value_or(host.inventory.cpus) - member.cpus);
  const std::uint64_t memory = host.memory_free.value_or(host.inventory.memory_bytes);
  host.memory_free = memory - std::min(memory, member.memory_bytes);
}
}  // namespace

sched::HostFacts host_facts(const registry::Provider& provider) {
  sched::HostFacts facts;
  facts.name = provider.name;
  facts.inventory = provider.inventory;
  facts.region = provider.region;
  facts.site = provider.site;
  facts.host_class = provider.host_class;
  facts.price_per_hour = provider.price_per_hour;
  facts.labels = provider.labels;
  if (Result<EngineKind> engine = parse_engine(provider.engine); engine) facts.engine = *engine;
  facts.drained = provider.drained;
  facts.reachable = provider.liveness != "unreachable" && provider.liveness != "lost";
  return facts;
}

Result<std::vector<sched::HostFacts>> all_host_facts(registry::Registry& registry) {
  TRY_ASSIGN(const std::vector<registry::Provider> providers, registry.providers());
  std::vector<sched::HostFacts> hosts;
  for (const registry::Provider& provider : providers) hosts.push_back(host_facts(provider));
  TRY_ASSIGN(const std::vector<JobId> unfinished, registry.unfinished());
  for (const JobId& id : unfinished) {
    TRY_ASSIGN(const registry::Job job, registry.job(id));
    const job::Attempt* attempt = job.machine.attempt();
    if (attempt == nullptr) continue;
    for (const job::Member& member : attempt->members)
      for (sched::HostFacts& host : hosts)
        if (host.name == member.host) take_away(host, member);
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
