// SPDX-License-Identifier: Apache-2.0
// Records how hosts come and go, and what they do to jobs: observation spans in the registry, and the figures and the
// avoidance that follow from them. Loop thread only.
//
// A host fails when it is given up after its silence (which counts only while others answer, so never for our own
// network's trouble), when it returns with another boot id, and when it breaks a job: the job's processes vanish, its
// disk is full, or it cannot start or finish a job that another host then starts or finishes. Draining a host, removing
// it, its end at the known time (FleetHost::ends_at) and the end of this daemon only end the observation.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "job/state.hpp"
#include "os/clock.hpp"
#include "registry/all_records.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::control {

class ReliabilityLog {
 public:
  ReliabilityLog(registry::AllRecords& registry, os::Clock& clock) : registry_(registry), clock_(clock) {}
  ReliabilityLog(const ReliabilityLog&) = delete;
  ReliabilityLog& operator=(const ReliabilityLog&) = delete;
  ~ReliabilityLog() { save(); }
  void save();  // what is watched just now

  // Call it at every answer of a host.
  void answered(const registry::Provider& provider, const std::string& boot_id,
                std::optional<WallTime> ends = {});
  // The host was given up after this long a silence.
  void lost(const registry::Provider& provider, Duration silent);
  // Call it after every committed step of a job; `before` is the state before the step.
  void on_step(const job::State& before, const job::Step& step);
  // Failures of the host's GPUs may have been recorded (record_changes): reads them again.
  void gpus_judged(const HostName& name);
  // Saves and recomputes what is due. Cheap.
  void tick(BootTime now);
  // Forgets providers that are no longer in the registry.
  void keep_only(const std::set<std::string>& names);

  // Adds figures for queries, and why jobs avoid the host.
  void apply(sched::HostFacts& facts) const;
  // Returns the failures per hour of a job on this host with these GPUs.
  [[nodiscard]] double rate_per_hour(const HostName& name, const std::string& host_class,
                                     const std::vector<std::string>& gpus) const;

 private:
  struct Host {
    std::string host_class, boot_id;
    bool drained = false;
    std::optional<WallTime> ends;             // in order, as was known last
    bool loaded = false;                      // what former daemons saw is in `seen`
    std::vector<sched::Watched> seen;         // ended observations, and failures that did not end one
    std::map<std::string, int> gpu_failures;  // by uuid
    std::optional<sched::Watched> open;       // the observation that goes on
    std::deque<Duration> starts;              // newest last
    sched::Reliability now;
    std::string shunned;
    BootTime save_due{};
    bool dirty = false;  // figures are to be worked out anew
  };
  Host& host_of(const HostName& name);
  [[nodiscard]] static bool is_excused(const Host& host, WallTime at);
  void close(const HostName& name, Host& host, WallTime at, const std::string& cause);
  void broke(const HostName& name, const std::string& cause, const std::string& text);
  void blame_former_hosts(const job::State& state, const HostName& good, bool finished);
  void save_open(const HostName& name, Host& host);
  void work_out(const HostName& name, Host& host);
  void judge_all();
  void event(const HostName& name, const std::string& kind, const std::string& text);

  registry::AllRecords& registry_;
  os::Clock& clock_;
  std::map<std::string, Host> hosts_;
  std::map<std::string, BootTime> placed_;  // "JOB/EPOCH" -> when its attempt was placed
  BootTime next_judgement_{};
};

// Returns the record of one GPU from the registry, for commands that run without a daemon. The GPU was observed as long
// as the host was; the host's own failures do not count for it.
[[nodiscard]] sched::Reliability reliability_of_gpu(const std::string& uuid,
                                                    const std::vector<registry::HostSpan>& spans, WallTime now);

}  // namespace gridctl::control
