// SPDX-License-Identifier: Apache-2.0
#include "cmd/drill.hpp"

#include <algorithm>

#include "crypto/sha256.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_long_job = std::chrono::hours{1};
}

std::string resume_fingerprint(const job::Spec& spec) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += std::to_string(part.size()) + ":" + part; };
  for (const std::string* part : {&spec.image, &spec.setup, &spec.run, &spec.resume_run, &spec.checkpoint.path})
    add(*part);
  if (!spec.checkpoint.whole_when.empty()) add(spec.checkpoint.whole_when);
  for (const job::Variant& variant : spec.variants)
    for (const std::string* part : {&variant.image, &variant.setup, &variant.run, &variant.resume_run}) add(*part);
  return to_hex(crypto::sha256(as_bytes(text)));
}

Result<bool> passed_drill(registry::JobRecords& registry, const job::Spec& spec) {
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(spec.name));
  return drill && drill->verdict == "yes" && drill->fingerprint == resume_fingerprint(spec);
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
  if (spec.checkpoint.interval == job::CheckpointPolicy::Interval::off)
    return std::optional{"job " + spec.name + " takes no checkpoints (checkpoint.interval: off), and " +
                         decision.placement->host.value +
                         " may be taken away at any time: the job would start over from its beginning"};
  TRY_ASSIGN(const std::optional<registry::Drill> drill, registry.drill(spec.name));
  const std::string command = "`gridctl job drill` shows whether it resumes on another host";
  if (!drill) return std::optional{"job " + spec.name + " was never drilled; " + command};
  if (drill->verdict != "yes") return std::optional{"the last drill of " + spec.name + " said: " + drill->summary};
  if (drill->fingerprint != resume_fingerprint(spec))
    return std::optional{"job " + spec.name + " has changed since its last drill; " + command};
  return none;
}

}  // namespace gridctl::cmd
