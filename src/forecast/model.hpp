// SPDX-License-Identifier: Apache-2.0
// Holds the question to `gridctl sim`: hosts, their failure rates, and their costs for a job.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "forecast/trace.hpp"
#include "job/spec.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::forecast {

// Holds times in seconds, and rates per hour of uptime.
struct HostModel {
  sched::HostFacts facts;    // as the scheduler sees it while it answers
  double rate_per_hour = 0;  // failures expected; 0 = none. What the interval is tuned from
  double rate_spread = 0;    // standard deviation of the logarithm of that rate, for each run draws its own
  double outage = 0;         // mean time away after a failure
  double start = 0;          // from being placed until the program runs, without the checkpoint
  double uplink = 0;         // Mbit/s
  double upload = 0;         // from taking a checkpoint until it is safe here
  double restore = 0;        // to bring the checkpoint to it
  double speed = 1;          // of the job's work
  std::shared_ptr<const UpTimes> recorded;  // comes and goes as recorded, and its rate is learned meanwhile
  std::size_t trace = 0;                    // hosts of one trace live at the same time of it
};

// Combines several hosts that run one gang into one that fails when any of them fails: the rates add up, the slowest
// sets the pace and the latest the start.
[[nodiscard]] HostModel together(const std::vector<const HostModel*>& hosts);

// Return the assumptions for an otherwise unknown host of this class (datacenter, cloud, market, otherwise home): its
// failure rate is that of sched/reliability.
inline constexpr double k_outage_assumed = 3600;                   // seconds, as sched::estimate assumes
inline constexpr double k_start_assumed = 30;                      // seconds, as the supervisor's tuning assumes
[[nodiscard]] double assumed_uplink(std::string_view host_class);  // Mbit/s

// Describes how often hosts are polled. A test checks that the values equal those of control/pace.hpp.
struct Pacing {
  Duration tick = std::chrono::milliseconds{200};
  Duration nap = std::chrono::seconds{5};
  Duration heartbeat = std::chrono::seconds{5};  // at most, of a host with a job
  Duration heartbeat_min = std::chrono::milliseconds{500};
  int beats_to_lost = 12;  // heartbeats in lost_after
  Duration heartbeat_idle = std::chrono::seconds{10};
  Duration reconnect = std::chrono::seconds{15};  // longest pause between two tries to reach an idle host
  int patience_beats = 3;                         // heartbeats until an unanswered poll is a dead connection
};

struct Grid {
  std::vector<HostModel> hosts;  // names are unique
  double work = 0;               // seconds that the job computes at speed 1
  double stall = 0;              // seconds that a checkpoint holds it up
  double state_bytes = 1 << 30;  // of a checkpoint
  double horizon = 0;            // seconds after which a run is given up
  Pacing pacing{};
};

// Describes one way to run the job: `spec` with its checkpoint policy, its deadline and the providers to which it is
// pinned.
struct Choice {
  std::string name;  // "tuned", "15m"; "any host", "ada"
  job::Spec spec;
  // For comparison: chooses the cheapest host per hour that fits, regardless of known speeds and failures, and of the
  // deadline.
  bool by_price = false;
};

}  // namespace gridctl::forecast
