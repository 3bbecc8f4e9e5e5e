// SPDX-License-Identifier: Apache-2.0
#include "sched/host_end.hpp"

#include <algorithm>

#include "sched/candidate.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::sched {

Duration lead_before_end(const CheckpointCost& cost) {
  const Duration stall = cost.stall > Duration{} ? cost.stall : k_stall_assumed;
  return std::min<Duration>(2 * (stall + cost.upload) + k_interval_min + k_end_rhythm + k_end_stop, k_end_lead_max);
}

Interval before_end(Interval tuned, Duration rest) {
  if (tuned.every <= rest || rest < k_interval_min) return tuned;
  tuned.every = rest;
  tuned.soon = std::min(tuned.soon, rest);
  tuned.pause = std::min(tuned.pause, rest / 2);
  tuned.reason += "; its host ends soon: one more checkpoint comes before that";
  return tuned;
}

namespace {
Duration of_seconds(double count) {
  return std::chrono::milliseconds{static_cast<std::int64_t>(std::clamp(count, 0.0, seconds(k_end_lead_max)) * 1000)};
}

// Returns whether the job continues elsewhere with the work done there, as far as is known.
bool takes_its_work_along(const job::Spec& spec, const JobKnowledge& known) {
  if (!known.task.saves) return false;
  return known.task.resumes || known.drilled || !spec.checkpoint.path.empty() || !known.work_known;
}

// Returns the seconds that the job needs to be there.
double needed(const Candidate& c, const job::Spec& spec, const JobKnowledge& known) {
  const Estimate& end = c.placement.estimate;
  const double down = end.transfer + end.start;
  if (!takes_its_work_along(spec, known)) {
    if (known.work_known) return end.takes();
    return down + seconds(spec.max_duration.value_or(k_end_stay));
  }
  CheckpointCost cost;
  cost.stall = of_seconds(known.task.stall);
  if (const HostGroup group = group_of(*c.host, c.gpus); group.up > 0)
    cost.upload = of_seconds(known.task.state_bytes / group.up);
  const double least = down + seconds(k_end_stay) + seconds(lead_before_end(cost));
  return known.work_known ? std::min(least, end.takes()) : least;
}
}  // namespace

bool fits_before_end(Candidate& c, const job::Spec& spec, const JobKnowledge& known) {
  if (!c.host->until || !c.host->left) return true;
  const std::string at = format_rfc3339(*c.host->until);
  const double left = seconds(*c.host->left);
  if (left <= 0)
    return c.reject("ends",
                    "its time ended at " + at + "; to set a new end: gridctl provider set " +
                        c.host->name.value + " --until TIME",
                    true);
  const double needs = needed(c, spec, known);
  if (needs <= left) return true;
  const bool moves_on = takes_its_work_along(spec, known);
  return c.reject("ends",
                  "it ends at " + at + ", in " + short_hours(left / 3600) + "; the job needs " + short_hours(needs / 3600) +
                      (moves_on ? " to start there, work for a minute and save" : " there, and saves no checkpoints"),
                  true);
}

}  // namespace gridctl::sched
