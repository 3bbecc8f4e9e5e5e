// SPDX-License-Identifier: Apache-2.0
// Turns a host's own report into its standing: what to ask, what the answer means, where it is kept. sched/standing
// makes the judgement.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "control/reach/agent_network.hpp"
#include "os/clock.hpp"
#include "registry/host_records.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/standing/standing.hpp"
#include "wire/frame.hpp"
#include "wire/health.hpp"

namespace gridctl::control {

// Codes of signs that other rooms look for.
inline constexpr std::string_view k_driver_hung = "driver_hung", k_gpu_gone = "gpu_gone";

// Sets the interval of the health requests. nvidia-smi -q takes a second of a core on a large host, so once a minute
// costs 2 %.
inline constexpr Duration k_health_every = std::chrono::minutes{1};
// Limits the health check before a start: GPUs are checked again, because another user may have arrived a second ago;
// hanging tools end it after their own deadline. If the job needs no GPU, a report of the regular sweep is enough, and
// the start hardly waits for it.
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

// Returns each host's clock minus ours, less what most hosts have in common, which is the error of our own clock.
// Unknown for a single host: either clock may be wrong. By host name.
[[nodiscard]] std::optional<std::int64_t> clock_offset(const std::map<std::string, std::int64_t>& offsets,
                                                       const std::string& host);
// Keeps the wall clocks of hosts relative to our clock since boot, which cannot be set: when our wall clock is set,
// readings from before the step still count.
class HostClocks {
 public:
  // `ahead_ms`: relative to our wall clock, when our clocks showed `wall` and `boot`.
  void heard(const std::string& host, std::int64_t ahead_ms, WallTime wall, BootTime boot);
  [[nodiscard]] bool knows(const std::string& host) const { return bases_.contains(host); }
  // Works like `clock_offset`, on everything heard. A single host that once agreed with us is off by as much as it was
  // set since.
  [[nodiscard]] std::optional<std::int64_t> offset(const std::string& host, WallTime wall, BootTime boot) const;

 private:
  // Milliseconds: a host's wall clock minus our clock since boot, now and when it last agreed with our wall clock.
  std::map<std::string, std::int64_t> bases_, agreed_;
};

// Sends one request over a worker's link; `unsupported` from an agent that does not know health.
[[nodiscard]] Result<wire::HealthReply> ask_health(wire::Link& link, os::Clock& clock,
                                                   const wire::HealthRequest& request);

// Returns why an attempt must not start there now; nullopt if it may. Never fails: a host that cannot report is not
// considered sick.
struct Unfit {
  std::string why;
  bool busy = false;  // somebody uses a GPU: it passes
};
[[nodiscard]] std::optional<Unfit> unfit_to_start(wire::Link& link, os::Clock& clock, const Inventory& inventory,
                                                  const std::vector<std::string>& gpu_uuids);

// Loads the standing from the registry. An unreadable standing counts as none.
[[nodiscard]] Result<sched::HostStanding> load_standing(registry::HostRecords& registry, const HostName& name);
// Loads the standings of all hosts that were checked, by name.
[[nodiscard]] Result<std::map<std::string, sched::HostStanding>> load_standings(registry::HostRecords& registry);
[[nodiscard]] Result<bool> was_looked_at(registry::HostRecords& registry, const HostName& name);
[[nodiscard]] Result<void> save_health(registry::HostRecords& registry, const HostName& name, WallTime now,
                                       const wire::HealthReport& report, const sched::HostStanding& standing);
// Turns each change into an event of the host; equal changes of several GPUs become one. Counts failures of GPUs.
[[nodiscard]] Result<void> record_changes(registry::HostRecords& registry, const HostName& name, WallTime now,
                                          const std::vector<sched::Change>& changes);

// Returns the code of the sign that an engine, which worked before, does not work now.
[[nodiscard]] std::string engine_sign(EngineKind kind);
// Excludes from the choice: quarantined and used GPUs, engines that do not work now, and the complete host if it is
// quarantined.
void apply_standing(sched::HostFacts& facts, const sched::HostStanding& standing, WallTime now);

// Returns pairs of label and text for `provider show`; empty for a host that was never checked.
[[nodiscard]] Result<std::vector<std::pair<std::string, std::string>>> health_lines(registry::HostRecords& registry,
                                                                                    const HostName& name, WallTime now);

// Connects, requests a new report and judges it; a clean unit is ok at once. Records everything.
struct CheckedHealth {
  wire::HealthReport report;
  std::optional<std::int64_t> clock_offset_ms;  // against this machine
  sched::HostStanding standing;
  std::vector<sched::Change> changes;
};
[[nodiscard]] Result<CheckedHealth> check_health(registry::HostRecords& registry, AgentNetwork& net,
                                                 const registry::Provider& provider, BootTime deadline,
                                                 os::Clock& clock);
// Holds a report without a judgement, for looking at many hosts at once.
struct SeenHealth {
  wire::HealthReport report;
  std::int64_t clock_offset_ms = 0;
};
[[nodiscard]] Result<SeenHealth> see_health(AgentNetwork& net, const registry::Provider& provider, BootTime deadline,
                                            os::Clock& clock);

}  // namespace gridctl::control
