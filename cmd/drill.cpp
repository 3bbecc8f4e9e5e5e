// SPDX-License-Identifier: Apache-2.0
#include "cmd/drill.hpp"

#include <algorithm>

#include "control/follow/drilled.hpp"
#include "sched/geo/residency.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_long_job = std::chrono::hours{1};
}

Result<std::optional<std::string>> drill_warning(registry::JobRecords& registry, const job::Spec& spec,
                                                 const sched::Decision& decision,
                                                 const std::vector<sched::HostFacts>& hosts) {
  std::optional<std::string> none;
  if (spec.max_duration && *spec.max_duration < k_long_job) return none;
  if (!decision.placement) return none;
  const auto host = std::ranges::find(hosts, decision.placement->host, &sched::HostFacts::name);
  const bool own =
      host == hosts.end() || (host->price_per_hour == 0 && host->host_class != "market" && host->host_class != "cloud");
  if (own) return none;
  if (job::interval_on(spec, sched::is_lent(host->host_class, host->labels)) == job::CheckpointPolicy::Interval::off)
    return std::optional{"job " + spec.name + " takes no checkpoints (checkpoint.interval: off), and " +
                         decision.placement->host.value +
                         " may be taken away at any time: the job would start over from its beginning"};
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(spec.name));
  const std::string command = "`gridctl job drill` shows whether it resumes on another host";
  if (!drill) return std::optional{"job " + spec.name + " was never drilled; " + command};
  if (drill->verdict != "yes") return std::optional{"the last drill of " + spec.name + " said: " + drill->summary};
  if (drill->fingerprint != control::resume_fingerprint(spec))
    return std::optional{"job " + spec.name + " has changed since its last drill; " + command};
  return none;
}

}  // namespace gridctl::cmd
