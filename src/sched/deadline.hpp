// SPDX-License-Identifier: Apache-2.0
// Is a job done by its deadline, and when must it leave a host that may fail? Pure.
//
// A host is in time when the job is almost surely done there before the deadline: within the expected time, a tenth
// more, for speeds and stalls are not what was measured, and the failures that come in 99 of 100 cases beyond those
// that are expected. Of the hosts in time the cheapest is taken. Others count as in time, too, as long as the job may
// try them: should it fail there before it has saved anything, it would be in time on one that is.
//
// While it runs: as in Wu et al., "Can't Be Late: Optimizing Spot Instance Savings under Deadlines" (NSDI '24), a job
// stays on what is cheap and may fail as long as there is slack, and goes to what is reliable at the last moment, for
// good. There that moment is when the computing that is left and the changes of machine fill the time that is left.
// Here it is when, if the host failed now, no other could redo what is not saved and still be in time.
#pragma once

#include <cstdint>
#include <string>

#include "sched/cost.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

// Seconds within which it is done in 99 of 100 cases; not below k_never when it never is.
[[nodiscard]] double safely(const Estimate& estimate, double failures_per_hour);
// The number of failures that is not exceeded in 99 of 100 cases when so many are expected. REQUIRES: expected >= 0.
[[nodiscard]] double failures_at_most(double expected);

// "deadline in 4h: it is met (done in 3.2h, within 3.6h almost surely)"
[[nodiscard]] std::string due_text(const Placement& placement, double time_left);
// For people, when the host that was chosen is not in time; empty when it is, or nothing can be said.
[[nodiscard]] std::string late_warning(const Decision& decision, const JobKnowledge& known);

// Where the job runs.
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
// Returns the question for place() if the present host failed now: less time is left, for the loss is noticed late.
[[nodiscard]] JobKnowledge after_failure(JobKnowledge saved, const CurrentRun& present);
// `elsewhere`: place() without the present host, for after_failure(). `time_left`: until the deadline.
[[nodiscard]] DeadlineVerdict judge_deadline(const CurrentRun& present, const Decision& elsewhere, double time_left);

}  // namespace gridctl::sched
