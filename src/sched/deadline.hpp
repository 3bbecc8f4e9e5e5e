// SPDX-License-Identifier: Apache-2.0
// Decides whether a job meets its deadline, and when it must leave a host that may fail. Pure.
//
// A host is in time if the job is almost certainly done there before the deadline: within the expected time, plus a
// tenth, because speeds and stalls differ from measurements, plus the failures that come in 99 of 100 cases beyond the
// expected ones. Of the hosts in time, the cheapest is taken. Others also count as in time as long as the job may try
// them: should it fail there before it has saved anything, it would still be in time on one that is.
//
// While it runs: as in Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines" (NSDI '24), a job
// stays on a cheap host that may fail as long as there is slack, and moves to a reliable one at the last moment, for
// good. There, that moment is when the remaining computing and the changes of machine fill the remaining time. Here it
// is when, if the host failed now, no other could redo the unsaved work and still be in time.
#pragma once

#include <cstdint>
#include <string>

#include "sched/cost.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

// Returns the seconds within which the job is done in 99 of 100 cases; at least k_never if it never is.
[[nodiscard]] double safely(const Estimate& estimate, double failures_per_hour);
// Returns the number of failures that is not exceeded in 99 of 100 cases when this many are expected. REQUIRES:
// expected >= 0.
[[nodiscard]] double failures_at_most(double expected);

// Returns text such as "deadline in 4h: it is met (done in 3.2h, within 3.6h almost surely)".
[[nodiscard]] std::string due_text(const Placement& placement, double time_left);
// Returns a text for people if the chosen host is not in time; empty if it is, or if nothing is known.
[[nodiscard]] std::string late_warning(const Decision& decision, const JobKnowledge& known);

// States where the job runs.
struct CurrentRun {
  HostName host;
  Estimate rest;  // if it goes on there
  double failures_per_hour = 0;
  double silence = 0;  // seconds until its loss is noticed
  double work = 0;     // that is left then, seconds at speed 1
};
struct DeadlineVerdict {
  enum class Kind : std::uint8_t { fine, leave, risky } kind = Kind::fine;
  std::string text{};       // why, with numbers
  double failures_max = 0;  // of where it goes
};
inline constexpr double k_chance_min = 0.001;   // of a failure before it is done: less is no reason to move
inline constexpr double k_more_reliable = 0.5;  // of the present failure rate: what is worth a move
// Returns the question for place() if the present host failed now: less time is left, because the loss is noticed late.
[[nodiscard]] JobKnowledge after_failure(JobKnowledge saved, const CurrentRun& present);
// `elsewhere`: place() without the present host, for after_failure(). `time_left`: until the deadline.
[[nodiscard]] DeadlineVerdict judge_deadline(const CurrentRun& present, const Decision& elsewhere, double time_left);

}  // namespace gridctl::sched
