// SPDX-License-Identifier: Apache-2.0
#include "cmd/provider_facts.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "control/fleet/health.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/follow/pauses.hpp"
#include "control/measure/bench.hpp"
#include "control/measure/network_record.hpp"
#include "job/image_reference.hpp"

namespace gridctl::cmd {

namespace {
Result<void> apply_standings(registry::HostRecords& registry, std::vector<sched::HostFacts>& hosts, WallTime now) {
  TRY_ASSIGN(const auto standings, control::load_standings(registry));
  for (sched::HostFacts& host : hosts)
    if (const auto found = standings.find(host.name.value); found != standings.end())
      control::apply_standing(host, found->second, now);
  return {};
}

Result<void> take_what_jobs_hold(registry::JobRecords& registry, std::vector<sched::HostFacts>& hosts) {
  std::map<std::string_view, sched::HostFacts*> by_name;
  for (sched::HostFacts& host : hosts) by_name[host.name.value] = &host;
  TRY_ASSIGN(const std::vector<job::State> running, registry.running());
  for (const job::State& state : running)
    for (const job::Member& member : state.attempt()->members)
      if (const auto found = by_name.find(member.host.value); found != by_name.end())
        sched::take_away(*found->second, member.gpu_uuids, member.cpus, member.memory_bytes);
  return {};
}

Result<void> read_hosts(registry::Registry& registry, WallTime now, std::vector<sched::HostFacts>& hosts) {
  TRY_ASSIGN(const std::vector<registry::Provider> providers, registry.providers());
  for (const registry::Provider& provider : providers) {
    hosts.push_back(control::facts_of(provider));
    control::tell_time_left(hosts.back(), now);
  }
  TRY(control::apply_bench(registry, hosts));
  TRY(control::apply_countries(registry, hosts));
  TRY(control::apply_pauses(registry, hosts));
  TRY_ASSIGN(auto links, control::link_figures(registry));
  for (sched::HostFacts& host : hosts) host.figures.merge(links[host.name.value]);
  TRY(apply_standings(registry, hosts, now));
  return take_what_jobs_hold(registry, hosts);
}
}  // namespace

Result<std::vector<sched::HostFacts>> all_host_facts(registry::Registry& registry, WallTime now) {
  std::vector<sched::HostFacts> hosts;
  TRY(registry.at_once([&] { return read_hosts(registry, now, hosts); }));
  return hosts;
}

Result<std::vector<sched::HostFacts>> member_facts(registry::HostRecords& registry, const registry::Job& job) {
  std::vector<sched::HostFacts> hosts;
  const job::Attempt* attempt = job.machine.attempt();
  if (attempt == nullptr) return hosts;
  TRY_ASSIGN(auto links, control::link_figures(registry));
  for (const job::Member& member : attempt->members) {
    const Result<registry::Provider> provider = registry.provider(member.host);
    if (!provider && provider.error().code == Code::not_found) continue;  // it was removed
    TRY(provider);
    hosts.push_back(control::facts_of(*provider));
    hosts.back().figures.merge(links[member.host.value]);
  }
  return hosts;
}

Error nothing_fits(const std::string& job_name, const sched::Decision& decision) {
  if (decision.rejections.empty() && decision.runners_up.empty())
    return make_error(Code::no_provider_fits, "no provider is registered that could run '" + job_name + "'",
                      "gridctl provider register NAME ssh://user@host");
  Error error = make_error(Code::no_provider_fits, "no provider can run '" + job_name + "'", "gridctl provider ls");
  if (std::ranges::find(decision.rejections, sched::k_image_tag, &sched::Rejection::code) != decision.rejections.end())
    error.hint = "write " + std::string(job::k_image_tags_way_out) + " in the job file, if whatever the host has by that name may run";
  for (const sched::Rejection& rejection : decision.rejections)
    error.context.push_back(rejection.host.value + ": " + rejection.code + ": " + rejection.detail);
  return error;
}

Error nothing_fits(const job::Spec& spec, const sched::GangDecision& decision) {
  Error error =
      make_error(Code::no_provider_fits,
                 "no " + std::to_string(job::nodes_least(spec)) + " providers can run '" + spec.name + "' together",
                 "gridctl provider links");
  if (std::ranges::find(decision.rejections, sched::k_clear_text, &sched::Rejection::code) != decision.rejections.end())
    error.hint = "write " + std::string(sched::k_clear_text_way_out) + " in the job file, if others may read and change what the members send";
  error.context = decision.short_pools;
  for (const sched::Rejection& rejection : decision.rejections)
    error.context.push_back(rejection.host.value + ": " + rejection.code + ": " + rejection.detail);
  if (error.context.empty()) error.context = sched::explain(decision, sched::wish_of(spec, sched::classify(spec)));
  return error;
}

}  // namespace gridctl::cmd
