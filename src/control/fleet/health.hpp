// SPDX-License-Identifier: Apache-2.0
// From a host's own report to its standing: what is asked, what the answer means, where it is kept. The judgement
// itself is sched/standing's.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "control/reach/agent_network.hpp"
#include "os/clock.hpp"
#include "registry/registry.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/standing/standing.hpp"
#include "wire/frame.hpp"
#include "wire/health.hpp"

namespace gridctl::control {

// Codes of signs that others ask for.
inline constexpr std::string_view k_driver_hung = "driver_hung", k_gpu_gone = "gpu_gone";

// How often each host is asked. nvidia-smi -q takes a second of a core on a large host: once a minute is 2 %.
inline constexpr Duration k_health_every = std::chrono::minutes{1};
// The look before a start: GPUs are looked at anew, for a stranger may have come a second ago; tools that hang end it
// after their own deadline. Where no GPU is asked for, a report of the sweep's will do, and is hardly waited for.
inline constexpr Duration k_health_start_wait = std::chrono::seconds{12};  // tools' deadline and what goes with it
inline constexpr Duration k_health_start_age_no_gpus = std::chrono::seconds{90};
inline constexpr Duration k_health_start_wait_no_gpus = std::chrono::seconds{1};

struct HealthContext {
  WallTime now;
  std::int64_t age_ms = 0;                      // of the report
  std::optional<std::int64_t> clock_offset_ms;  // host's wall clock minus the right time, as far as is known
  std::set<std::string> vacated;                // GPUs whose attempt has ended since they were last looked at
};
// Pure.
[[nodiscard]] sched::Look look_of(const wire::HealthReport& report, const Inventory& inventory,
                                  const sched::HostStanding& before, const HealthContext& context);

// Host's clock minus ours, less what most hosts have in common: then it is ours that is wrong. Unknown for a host
// alone: either may be wrong. By host name.
[[nodiscard]] std::optional<std::int64_t> clock_offset(const std::map<std::string, std::int64_t>& offsets,
                                                       const std::string& host);
// The wall clocks of hosts, kept against our clock since boot, which nobody sets: when ours is set, readings from
// before the step still count.
class HostClocks {
 public:
  // `ahead_ms`: of ours, when ours showed `wall` and `boot`.
  void heard(const std::string& host, std::int64_t ahead_ms, WallTime wall, BootTime boot);
  [[nodiscard]] bool knows(const std::string& host) const { return bases_.contains(host); }
  // As `clock_offset`, of what all have said; and a host alone that has once agreed with us is as far off as it was set
  // since.
  [[nodiscard]] std::optional<std::int64_t> offset(const std::string& host, WallTime wall, BootTime boot) const;

 private:
  // Milliseconds: a host's wall clock less our clock since boot, now and when it last agreed with our wall clock.
  std::map<std::string, std::int64_t> bases_, agreed_;
};

// One request over a worker's link; `unsupported` from an agent that knows no health.
[[nodiscard]] Result<wire::HealthReply> ask_health(wire::Link& link, os::Clock& clock,
                                                   const wire::HealthRequest& request);

// Why an attempt must not start there now; nullopt when it may. Never fails: who cannot tell is not sick.
struct Unfit {
  std::string why;
  bool busy = false;  // somebody uses a GPU: it passes
};
[[nodiscard]] std::optional<Unfit> unfit_to_start(wire::Link& link, os::Clock& clock, const Inventory& inventory,
                                                  const std::vector<std::string>& gpu_uuids);

// Loads the standing from the registry. An unreadable standing is none.
[[nodiscard]] Result<sched::HostStanding> load_standing(registry::JobRecords& registry, const HostName& name);
// Loads the standings of all hosts that were looked at, by name.
[[nodiscard]] Result<std::map<std::string, sched::HostStanding>> load_standings(registry::JobRecords& registry);
[[nodiscard]] Result<bool> was_looked_at(registry::JobRecords& registry, const HostName& name);
[[nodiscard]] Result<void> save_health(registry::JobRecords& registry, const HostName& name, WallTime now,
                                       const wire::HealthReport& report, const sched::HostStanding& standing);
// Each change becomes an event of the host; equal ones of several GPUs become one. Failures of GPUs are counted.
[[nodiscard]] Result<void> record_changes(registry::JobRecords& registry, const HostName& name, WallTime now,
                                          const std::vector<sched::Change>& changes);

// The code of the sign that an engine, which worked, does not work now.
[[nodiscard]] std::string engine_sign(EngineKind kind);
// Takes quarantined and used GPUs, and engines that do not work now, and the whole host when it is quarantined, out of
// the choice.
void apply_standing(sched::HostFacts& facts, const sched::HostStanding& standing, WallTime now);

// For `provider show`: pairs of label and text, nothing for a host that was never looked at.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> health_lines(registry::JobRecords& registry,
                                                                                    const HostName& name, WallTime now);

// Connects, has a new report made and judges it; a clean unit is ok at once. Everything is recorded.
struct CheckedHealth {
  wire::HealthReport report;
  std::optional<std::int64_t> clock_offset_ms;  // against this machine
  sched::HostStanding standing;
  std::vector<sched::Change> changes;
};
[[nodiscard]] Result<CheckedHealth> check_health(registry::JobRecords& registry, AgentNetwork& net,
                                                 const registry::Provider& provider, BootTime deadline,
                                                 os::Clock& clock);
// A report without a judgement: for looking at many hosts at once.
struct SeenHealth {
  wire::HealthReport report;
  std::int64_t clock_offset_ms = 0;
};
[[nodiscard]] Result<SeenHealth> see_health(AgentNetwork& net, const registry::Provider& provider, BootTime deadline,
                                            os::Clock& clock);

}  // namespace gridctl::control
