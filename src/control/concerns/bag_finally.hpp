// SPDX-License-Identifier: Apache-2.0
// Runs the last step of a bag (`finally`). When all tasks are over, further attempts of the job itself run that
// command, in a working directory with the files that the tasks left. The job's specification says whether an attempt
// runs tasks or the last step, and it changes only while the job waits. So there is never doubt about what an attempt
// runs, whenever a daemon dies.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "bag/bag.hpp"
#include "control/concerns/controls.hpp"
#include "job/last_step.hpp"

namespace gridctl::control {

[[nodiscard]] inline bool works_on_tasks(const TrackedJob& job) { return job::works_on_tasks(job.spec()); }
[[nodiscard]] inline bool has_last_step(const TrackedJob& job) { return !job.spec().tasks->finally_run.empty(); }

// Takes one step from the tasks to the last step, or back to the tasks if some are left again. Call it until
// works_on_tasks() has changed. `workers`: ids of the leader's workers. `text`: how the tasks ended.
void begin_last_step(const Controls& controls, TrackedJob& leader, const std::set<std::string>& workers, const bag::Bag& bag,
                     std::string text);
// Ends the workers before the bag ends; the leader is not one of them.
void end_workers(const Controls& controls, const TrackedJob& leader, std::set<std::string> workers, const std::string& text);
// Takes one step towards another specification of the job; then the job is placed again.
void reshape(const Controls& controls, TrackedJob& leader, const std::function<void(job::Spec&)>& shape);
// Ends the bag as its tasks ended, unless tasks were added in the meantime.
void end_bag(const Controls& controls, TrackedJob& leader, const job::TwinSucceeded& end);
// Judges the last step after its attempt has ended, while its files are being fetched: if it succeeded, the job will
// end as the tasks did; if tasks were added, the job returns to them.
void judge_last_step(const Controls& controls, TrackedJob& leader, const bag::Bag& bag);
void back_to_tasks(const Controls& controls, TrackedJob& leader);

}  // namespace gridctl::control
