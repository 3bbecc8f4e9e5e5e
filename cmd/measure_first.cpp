// SPDX-License-Identifier: Apache-2.0
#include "cmd/measure_first.hpp"

#include "base/text.hpp"
#include "cmd/network.hpp"
#include "control/measure/network_watch.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_measuring_patience = std::chrono::seconds{15};
constexpr std::size_t k_measured_hosts_max = 8;  // 28 links: more cannot be measured in some seconds
}  // namespace

std::set<std::string> hosts_to_measure(const sched::GangDecision& gang, const sched::GangWish& wish,
                                       const sched::Decision& member, bool again) {
  std::set<std::string> hosts;
  if (wish.near == sched::Near::any || (!again && gang.plan && gang.plan->unmeasured.empty())) return hosts;
  if (gang.plan)
    for (const sched::Placement& one : gang.plan->members) hosts.insert(one.host.value);
  if (member.placement) hosts.insert(member.placement->host.value);
  for (const sched::Placement& one : member.runners_up)
    if (hosts.size() < k_measured_hosts_max) hosts.insert(one.host.value);
  return hosts.size() > 1 ? hosts : std::set<std::string>{};
}

void measure_between(Context& context, registry::HostRecords& registry, std::set<std::string> hosts, bool again) {
  control::MeasureAll wanted;
  wanted.even_fresh = again;
  wanted.among = std::move(hosts);
  wanted.until = context.clock.boot() + k_measuring_patience;
  wanted.told = [&](const sched::LinkTask& task, const Result<void>* outcome) {
    if (outcome == nullptr) context.note("measuring the link between " + task.a + " and " + task.b + (again ? " again" : ""));
    else if (!*outcome) context.note("  not measured: " + sanitize(outcome->error().one_line()));
  };
  const auto measure = [&]() -> Result<void> {
    TRY_ASSIGN(control::SshNetwork net, network_of(context, registry));
    return control::measure_now(registry, context.paths(), net, context.clock, wanted);
  };
  const Result<void> measured = measure();
  if (!measured) context.note("  not measured: " + sanitize(measured.error().one_line()));
}

std::string compulsory_checkpoints_warning(const job::Spec& spec, const sched::Decision& decision,
                                           const std::vector<sched::HostFacts>& hosts) {
  if (job::interval_on(spec, true) == spec.checkpoint.interval) return "";
  std::set<std::string> suitable;
  if (decision.placement) suitable.insert(decision.placement->host.value);
  for (const sched::Placement& one : decision.runners_up) suitable.insert(one.host.value);
  std::vector<std::string> lent;
  for (const sched::HostFacts& host : hosts)
    if (suitable.contains(host.name.value) && sched::is_lent(host.host_class, host.labels)) lent.push_back(host.name.value);
  if (lent.empty()) return "";
  return "checkpoint.interval: off does not hold on borrowed hosts: if the job runs on " + join(lent, " or ") +
         ", checkpoints are taken there as with interval: auto";
}

std::string clear_text_warning(const sched::GangDecision& gang, const std::vector<sched::HostFacts>& hosts) {
  std::vector<std::string> lent;
  if (gang.plan && gang.plan->members.size() > 1)
    for (const sched::Placement& member : gang.plan->members)
      for (const sched::HostFacts& host : hosts)
        if (host.name == member.host && sched::is_lent(host.host_class, host.labels)) lent.push_back(host.name.value);
  if (lent.empty()) return "";
  return "the members of this job exchange data unencrypted, and " + join(lent, ", ") +
         (lent.size() == 1 ? " belongs" : " belong") +
         " to others: anyone who runs these hosts or the network between them can read and change the data; "
         "constraints: {traffic: protected} keeps the members on your own hosts";
}

}  // namespace gridctl::cmd
