// SPDX-License-Identifier: Apache-2.0
// Estimates time and money to finish a job on given hosts, including failures. Pure.
//
// First the hosts get what they lack and start; then Daly's complete model (interval.hpp, theory K4) at the interval
// that is best for this job there. A checkpoint is safe only after its upload: no interval is shorter, and a failure
// loses that much more (K13). Hosts that a job needs together fail as one: their rates add up (K8).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/inventory.hpp"
#include "job/spec.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::sched {

// Holds the known work of a job. Seconds and bytes; 0 = not known, unless stated otherwise.
struct WorkEstimate {
  double work = 0;         // useful computing that is left, at speed 1
  double stall = 0;        // one checkpoint holds it up for so long
  double state_bytes = 0;  // of a checkpoint
  double input_bytes = 0;  // that a host must be sent before it can start
  double silence = 60;     // until a lost host is given up: recovery.lost_after
  bool saves = true;       // false: every failure throws all away
  bool resumes = false;    // it begins with a checkpoint, which its host has to be sent first
};
inline constexpr double k_work_assumed = 10 * 3600;  // when nobody told: long enough that starting hardly counts

// Represents one host, or a gang of them that fails and waits as one.
struct HostGroup {
  double price_per_hour = 0;     // USD, of all together
  double speed = 1;              // of the job's work
  double failures_per_hour = 0;  // of all together; 0 = none
  double start = 30;             // seconds from being placed until the program runs, without transfers
  double down = 0, up = 0;       // bytes a second to and from each; 0 = not known: transfers take no time
};

inline constexpr double k_never = 3e9;  // seconds: a century

[[nodiscard]] std::string in_words(double seconds);  // "3h12m"; a century at most

// Holds expected seconds of each kind; they add up to takes().
struct Estimate {
  double transfer = 0, start = 0, work = 0, saving = 0;
  double lost = 0;      // computed and thrown away
  double recovery = 0;  // from failures until it runs again
  double interval = 0;  // between checkpoints; 0 without
  double failure = 0;   // what one failure costs on average, computing and recovery; not a part of takes()
  double price_per_hour = 0;
  bool operator==(const Estimate&) const = default;
  [[nodiscard]] double takes() const { return transfer + start + work + saving + lost + recovery; }
  [[nodiscard]] bool is_never() const { return !(takes() < k_never); }           // it fails before the work is done
  [[nodiscard]] double cost() const { return price_per_hour * takes() / 3600; }  // USD
};

// REQUIRES: speed > 0.
[[nodiscard]] Estimate to_finish(const WorkEstimate& task, const HostGroup& group);
// Lists the quantities to minimise, the most important one first.
using Aim = std::pair<double, double>;
[[nodiscard]] Aim aim_of(job::Optimize optimize, const Estimate& estimate, double failures_per_hour);
// Returns text such as "6.2h: work 5.8h, checkpoints 4min, lost 9min…"; leaves out parts below a hundredth.
[[nodiscard]] std::string describe(const Estimate& estimate);

// Reads the work of a job from its file.
[[nodiscard]] WorkEstimate task_of(const job::Spec& spec);

// Sets the measured 16-bit matrix rate of an A100 as speed 1, like dlperf 100 in queries.
inline constexpr double k_reference_tflops = 250;
// An unknown GPU counts as a twentieth of that. `provider bench` measures it and replaces this guess.
inline constexpr double k_unknown_tflops = 12.5;

// A processor core that does the work of GPUs: single precision, two AVX2 units at 3 GHz, half of their peak.
inline constexpr double k_core_tflops = 0.05;
[[nodiscard]] constexpr double speed_of_cores(double cpus) { return cpus * k_core_tflops / k_reference_tflops; }

// Returns the speed of these GPUs of the host together: as measured, otherwise as the catalogue predicts for the model.
// 1 without GPUs.
[[nodiscard]] double speed_of(const HostFacts& host, const std::vector<const Gpu*>& gpus);
// Returns the host alone with these GPUs.
[[nodiscard]] HostGroup group_of(const HostFacts& host, const std::vector<const Gpu*>& gpus);

}  // namespace gridctl::sched
