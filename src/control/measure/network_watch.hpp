// SPDX-License-Identifier: Apache-2.0
// Keeps link figures fresh while the daemon runs: one measurement at a time, none while a tree or checkpoint moves,
// within each host's daily bytes. Loop thread only; measurements run on their own thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "control/measure/network_record.hpp"
#include "control/reach/link_meter.hpp"
#include "os/loop.hpp"
#include "probe/netperf.hpp"

namespace gridctl::control {

class NetworkWatch {
 public:
  // `work_place` returns what is needed to reach a provider; `is_up` returns whether it answers now. All must outlive
  // this object.
  NetworkWatch(os::Loop& loop, os::Clock& clock, registry::HostRecords& registry, Paths paths, LinkMeter& meter,
               std::function<std::optional<HostAccess>(const HostName&)> work_place,
               std::function<bool(const std::string&)> is_up);

  void tick(BootTime now);
  void pinged(const HostName& host, Duration rtt);

 private:
  void plan(BootTime now);
  void begin(const sched::LinkTask& task);
  void save_pings();
  void ended(const sched::LinkTask& task, const Result<void>& outcome);
  template <class Measure, class Record>
  void run(const sched::LinkTask& task, Measure measure, Record record);

  os::Loop& loop_;
  os::Clock& clock_;
  registry::HostRecords& registry_;
  Paths paths_;
  LinkMeter& meter_;
  std::function<std::optional<HostAccess>(const HostName&)> work_place_;
  std::function<bool(const std::string&)> is_up_;
  NetworkRecorder recorder_;
  std::map<HostName, probe::RttWindow> pings_;  // not yet recorded
  std::map<std::string, BootTime> not_before_;  // of tasks that failed
  bool under_way_ = false, changed_ = true;     // changed: to be judged, as at the beginning
  BootTime next_plan_{}, next_pings_{}, next_judge_{};
  os::Pool pool_{1};  // last: waits for the measurement, which refers to the others
};

// Runs the daemon's measurements now, in this thread: every due one that concerns `only` (all if empty). `told` is
// called before each one, and with its error afterwards.
struct MeasureAll {
  std::string only;
  bool even_fresh = false;  // also what is not due
  std::function<void(const sched::LinkTask&, const Result<void>* outcome)> told;
  std::set<std::string> among{};    // only links between these hosts; empty: no matter
  std::optional<BootTime> until{};  // nothing begins after this instant
};
[[nodiscard]] Result<void> measure_now(registry::HostRecords& registry, const Paths& paths, AgentNetwork& net, os::Clock& clock,
                                       const MeasureAll& wanted);

}  // namespace gridctl::control
