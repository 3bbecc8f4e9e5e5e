// SPDX-License-Identifier: Apache-2.0
#include "control/fleet/host_facts.hpp"

#include <chrono>

#include "base/host_words.hpp"
#include "control/measure/network_record.hpp"
#include "probe/preflight.hpp"

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
  facts.until = provider.until;
  facts.figures = provider.figures;
  if (const std::string reason = probe::unfit_reason(provider.inventory); !reason.empty())
    facts.quarantined = reason + "; after the repair: gridctl provider check " + provider.name.value;
  facts.reachable = !is_absent_state(provider.liveness);
  return facts;
}

void tell_time_left(sched::HostFacts& facts, WallTime now) {
  facts.left.reset();
  if (facts.until) facts.left = *facts.until - now;
}

Result<std::map<std::string, sched::Figures>> link_figures(registry::HostRecords& registry) {
  TRY_ASSIGN(const std::vector<registry::HostLink> links, registry.links());
  std::map<std::string, sched::Figures> found;
  for (const auto& [name, network] : networks_of(links)) {
    sched::Figures& figures = found[name];
    if (network.up_bits_per_second) figures["inet_up"] = *network.up_bits_per_second / 1e6;
    if (network.down_bits_per_second) figures["inet_down"] = *network.down_bits_per_second / 1e6;
    if (network.latency) figures["rtt"] = std::chrono::duration<double, std::milli>(*network.latency).count();
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
  subject.inventory = &*provider.inventory;
  subject.figures = &provider.figures;
  return subject;
}

Result<std::vector<sched::PairLink>> pair_links(registry::HostRecords& registry) {
  TRY_ASSIGN(const std::vector<registry::HostLink> measured, registry.links());
  return pair_links(measured);
}

}  // namespace gridctl::control
