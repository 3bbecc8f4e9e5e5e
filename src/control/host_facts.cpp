// SPDX-License-Identifier: Apache-2.0
#include "control/host_facts.hpp"

#include <algorithm>

namespace gridctl::control {

sched::HostFacts facts_of(const registry::Provider& provider) {
  sched::HostFacts facts;
  facts.name = provider.name;
  facts.inventory = provider.inventory;
  facts.region = provider.region;
  facts.site = provider.site;
  facts.host_class = provider.host_class;
  facts.price_per_hour = provider.price_per_hour;
  facts.labels = provider.labels;
  if (const Result<EngineKind> engine = parse_engine(provider.engine)) facts.engine = *engine;
  facts.drained = provider.drained;
  facts.figures = provider.figures;
  facts.reachable = provider.liveness != "unreachable" && provider.liveness != "lost";
  return facts;
}

Result<std::map<std::string, sched::Figures>> link_figures(registry::Registry& registry) {
  TRY_ASSIGN(const std::vector<registry::HostLink> links, registry.links());
  std::map<std::string, sched::Figures> found;
  for (const registry::HostLink& link : links) {
    const bool down = link.source == registry::k_here, up = link.target == registry::k_here;
    if (down == up) continue;
    sched::Figures& figures = found[down ? link.target : link.source];
    if (link.bits_per_second) figures[down ? "inet_down" : "inet_up"] = *link.bits_per_second / 1e6;
    if (link.rtt_us) figures["rtt"] = static_cast<double>(*link.rtt_us) / 1000;
  }
  return found;
}

sched::Subject subject_of(const registry::Provider& provider) {
  sched::Subject subject;
  subject.name = provider.name.value;
  subject.address = provider.address;
  subject.state = provider.drained ? "drained" : std::string_view(provider.liveness);
  subject.region = provider.region;
  subject.site = provider.site;
  subject.host_class = provider.host_class;
  subject.engine = provider.engine;
  subject.price_per_hour = provider.price_per_hour;
  subject.labels = &provider.labels;
  subject.inventory = &provider.inventory;
  subject.figures = &provider.figures;
  return subject;
}

void take_away(sched::HostFacts& host, const job::Member& member) {
  host.busy_gpus.insert(host.busy_gpus.end(), member.gpu_uuids.begin(), member.gpu_uuids.end());
  host.cpus_free = std::max(0.0, host.cpus_free.value_or(host.inventory.cpus) - member.cpus);
  const std::uint64_t memory = host.memory_free.value_or(host.inventory.memory_bytes);
  host.memory_free = memory - std::min(memory, member.memory_bytes);
}

}  // namespace gridctl::control
