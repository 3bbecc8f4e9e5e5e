// SPDX-License-Identifier: Apache-2.0
// The last step of a bag (`finally`): when all its tasks are over, further attempts of the job itself run that command,
// in a working directory that holds what the tasks have left. Whether they do stands in the job's specification, which
// changes only while the job waits: so no attempt is in doubt about what it runs, whenever a daemon dies.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "bag/bag.hpp"
#include "control/concerns/controls.hpp"
#include "job/last_step.hpp"

namespace gridctl::control {

[[nodiscard]] inline bool works_on_tasks(const TrackedJob& job) { return job.spec().tasks && !job::is_last_step(job.spec()); }
[[nodiscard]] inline bool has_last_step(const TrackedJob& job) { return !job.spec().tasks->finally_run.empty(); }

// One step on the way from the tasks to the last step, or back to the tasks when some are left again. To be called until
// works_on_tasks() has changed. `workers`: ids of the leader's workers; `text`: how the tasks ended.
void begin_last_step(const Controls& controls, TrackedJob& leader, const std::set<std::string>& workers, const bag::Bag& bag,
                     std::string text);
// Ends them before the bag does; the leader is none of them.
void end_workers(const Controls& controls, const TrackedJob& leader, std::set<std::string> workers, const std::string& text);
// One step on the way to another specification of the job, which then gets a place again.
void reshape(const Controls& controls, TrackedJob& leader, const std::function<void(job::Spec&)>& shape);
// The bag ends as its tasks did, unless tasks were added meanwhile.
void end_bag(const Controls& controls, TrackedJob& leader, const job::TwinSucceeded& end);
// Where its attempt has ended, and its files are being fetched: the job will end as the tasks did, if it succeeded, and
// goes back to its tasks, if some were added.
void judge_last_step(const Controls& controls, TrackedJob& leader, const bag::Bag& bag);
void back_to_tasks(const Controls& controls, TrackedJob& leader);

}  // namespace gridctl::control
