// SPDX-License-Identifier: Apache-2.0
#include "sched/twins.hpp"

#include <algorithm>

#include "base/formatted.hpp"
#include "sched/candidate.hpp"

namespace gridctl::sched {

TwinPlan place_twins(const job::Spec& spec, std::vector<HostFacts> hosts, const Decision& own,
                           const JobKnowledge& known) {
  TwinPlan plan;
  plan.wanted = spec.twins;
  if (own.placement) plan.placements.push_back(*own.placement);
  while (!plan.placements.empty() && static_cast<int>(plan.placements.size()) < plan.wanted) {
    for (HostFacts& host : hosts)
      if (host.name == plan.placements.back().host) host.apart = "another twin is on this host";
    Decision next = place(spec, hosts, {}, known);
    if (!next.placement) {
      plan.missing = summary(next);
      break;
    }
    plan.placements.push_back(*std::move(next.placement));
  }
  return plan;
}

double price_of(const TwinPlan& plan) {
  double sum = 0;
  for (const Placement& one : plan.placements) sum += one.price_per_hour;
  return sum;
}

std::vector<std::string> explain(const TwinPlan& plan, const job::Spec& spec, const Decision& own) {
  std::vector<std::string> lines;
  if (spec.checkpoint.standby && !own.runners_up.empty())
    lines.push_back("standby: its newest checkpoint is kept ready on " + own.runners_up.front().host.value +
                    ", which uses the network and disk, but no GPU and no money until it takes over");
  if (plan.wanted <= 1 || plan.placements.empty()) return lines;
  const std::string kind = spec.service ? "replica " : "twin ";
  for (std::size_t i = 1; i < plan.placements.size(); ++i)
    lines.push_back(kind + std::to_string(i + 1) + " of " + std::to_string(plan.wanted) + " on " +
                    plan.placements[i].host.value + ": " + plan.placements[i].reason);
  if (!plan.missing.empty())
    lines.push_back(kind + std::to_string(plan.placements.size() + 1) + " of " + std::to_string(plan.wanted) +
                    " would wait: " + plan.missing);
  const double all = price_of(plan), one = plan.placements.front().price_per_hour;
  if (plan.placements.size() == 1) {
    lines.push_back("1 " + kind + "costs " + price_text(all));
    return lines;
  }
  std::string text = std::to_string(plan.placements.size()) +
                     (spec.service ? " replicas cost " : " twins at once cost ") + price_text(all) + " together";
  if (one > 0) text += formatted(", %.1f times what one costs", all / one);
  lines.push_back(spec.service ? text : text + "; the first to finish ends the others");
  return lines;
}

}  // namespace gridctl::sched
