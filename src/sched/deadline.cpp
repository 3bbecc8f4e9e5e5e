// SPDX-License-Identifier: Apache-2.0
#include "sched/deadline.hpp"

#include <algorithm>
#include <cmath>

#include "base/formatted.hpp"
#include "base/time.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_sure = 0.99;
constexpr double k_sure_deviations = 2.326;  // of a normal distribution
constexpr double k_normal_from = 100;        // failures expected: from here on a Poisson distribution is nearly normal
constexpr double k_error = 0.1;              // of the expected time


std::string chance_text(double share) { return formatted("%.2g %%", share * 100); }

double chance_of_failure(double failures_per_hour, double seconds) {
  return -std::expm1(-failures_per_hour * std::max(seconds, 0.0) / 3600);
}

// Returns text such as "3.2h expected, 3.6h to be safe".
std::string need_text(const Placement& placement) {
  if (placement.estimate.is_never()) return "the host fails before the work is done";
  return in_words(placement.estimate.takes()) + " expected, " + in_words(placement.safely) + " to be safe";
}

std::string left_text(double time_left) {
  return time_left > 0 ? "deadline in " + in_words(time_left) : "deadline " + in_words(-time_left) + " ago";
}
}  // namespace

double failures_at_most(double expected) {
  if (expected >= k_normal_from) return std::ceil(expected + k_sure_deviations * std::sqrt(expected));
  double count = 0, share = std::exp(-expected), sum = share;
  while (sum < k_sure) {
    share *= expected / ++count;
    sum += share;
  }
  return count;
}

double safely(const Estimate& estimate, double failures_per_hour) {
  if (estimate.is_never()) return k_never;
  const double takes = estimate.takes();
  const double expected = failures_per_hour * takes / 3600;
  const double more = std::max(0.0, failures_at_most(expected) - expected);
  return takes * (1 + k_error) + more * estimate.failure;
}

std::string due_text(const Placement& placement, double time_left) {
  if (!placement.refuge.value.empty())
    return left_text(time_left) + ", met if the job moves to " + placement.refuge.value +
           " in time: " + need_text(placement);
  const bool missed = placement.estimate.takes() > time_left;
  const char* word = missed ? "missed" : placement.late ? "not certain to be met" : "met";
  return left_text(time_left) + ", " + word + ": " + need_text(placement);
}

std::string late_warning(const Decision& decision, const JobKnowledge& known) {
  if (!decision.placement || !decision.placement->late || !known.is_due()) return "";
  const Placement& best = *decision.placement;
  const bool hopeless = best.estimate.takes() > *known.time_left;
  return "no host that can run the job now is " + std::string(hopeless ? "expected" : "sure") +
         " to finish in time: " + left_text(*known.time_left) + ", " + best.host.value + " needs " + need_text(best);
}

JobKnowledge after_failure(JobKnowledge saved, const CurrentRun& present) {
  saved.task.resumes = true;
  if (saved.time_left) *saved.time_left -= present.silence;
  return saved;
}

DeadlineVerdict judge_deadline(const CurrentRun& present, const Decision& elsewhere, double time_left) {
  if (time_left <= 0) return {};
  const double done_in = present.rest.takes();
  const double chance = chance_of_failure(present.failures_per_hour, done_in);
  const bool late_here = done_in > time_left;
  if (!late_here && chance < k_chance_min) return {};
  const auto& other = elsewhere.placement;
  if (other && !other->late) return {};
  const double failures_max = present.failures_per_hour * k_more_reliable;
  const std::string here = left_text(time_left) + ", " + present.host.value + " needs " + in_words(done_in) +
                           " more and fails before with a chance of " + chance_text(chance);
  const bool better = other && (late_here || other->failures_per_hour <= failures_max);
  if (better && other->estimate.takes() <= time_left)
    return {DeadlineVerdict::Kind::leave,
            here + "; after a failure now " + other->host.value + " could hardly be in time any more (" +
                need_text(*other) + ", " + in_words(present.silence) + " until the failure is noticed)",
            late_here ? 0 : failures_max};
  return {DeadlineVerdict::Kind::risky,
          here + (other ? "; another host could not make up for a failure now: " + other->host.value + ", " +
                              need_text(*other)
                        : "; no other host can run the job now"),
          0};
}

}  // namespace gridctl::sched
