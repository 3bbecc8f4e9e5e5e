// SPDX-License-Identifier: Apache-2.0
#include "sched/preempt.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace gridctl::sched {

namespace {
// Orders the most valuable first: those of high priority, then those that have run for longest.
bool is_dearer(const Holder& a, const Holder& b) {
  return std::tuple(b.leaving ? 1 : 0, a.priority, b.began_at, b.job.value) >
         std::tuple(a.leaving ? 1 : 0, b.priority, a.began_at, a.job.value);
}

bool avoids(const std::vector<Avoid>& avoided, const HostFacts& host) {
  return !host.shunned.empty() || std::ranges::any_of(avoided, [&](const Avoid& one) { return one.host == host.name; });
}

struct Plan {
  Preemption preemption;
  int priority = 0;  // the highest of those that leave
  std::size_t unasked = 0;
  std::int64_t oldest = INT64_MAX;  // when the first of those that leave began
};
}  // namespace

std::optional<Preemption> preempt(const job::Spec& spec, const std::vector<HostFacts>& hosts,
                                  std::vector<Holder> holders, const std::vector<Avoid>& avoided,
                                  const JobKnowledge& known) {
  std::ranges::sort(holders, is_dearer);
  std::optional<Plan> best;
  for (const HostFacts& empty : hosts) {
    if (std::ranges::none_of(holders, [&](const Holder& one) { return one.host == empty.name; })) continue;
    std::vector<HostFacts> host{empty};
    std::optional<Placement> placement = place(spec, host, avoided, known).placement;
    if (!placement) continue;
    Plan plan;
    for (const Holder& holder : holders) {
      if (holder.host != empty.name) continue;
      // Checks whether the job would also fit beside this one.
      HostFacts kept = host.front();
      take_away(host.front(), holder.gpu_uuids, holder.cpus, holder.memory_bytes);
      if (std::optional<Placement> beside = place(spec, host, avoided, known).placement) {
        placement = std::move(beside);
        continue;
      }
      host.front() = std::move(kept);
      plan.preemption.jobs.push_back(holder.job);
      plan.priority = std::max(plan.priority, holder.priority);
      plan.unasked += holder.leaving ? 0 : 1;
      plan.oldest = std::min(plan.oldest, holder.began_at);
    }
    if (plan.preemption.jobs.empty()) {
      if (avoids(avoided, empty)) continue;  // it would not go there while it may wait for another one
      return std::nullopt;                   // it fits there as things are
    }
    plan.preemption.placement = *std::move(placement);
    const auto rank = [](const Plan& one) {
      return std::tuple(one.unasked > 0, one.priority, one.preemption.jobs.size(), -one.oldest);
    };
    if (!best || rank(plan) < rank(*best)) best = std::move(plan);
  }
  if (!best) return std::nullopt;
  return std::move(best->preemption);
}

}  // namespace gridctl::sched
