// SPDX-License-Identifier: Apache-2.0
// Decides about the workers of a bag: its last step, who leaves, and who gets more memory or disk.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "bag/bag.hpp"
#include "control/concerns/controls.hpp"
#include "control/follow/bag_run.hpp"
#include "job/last_step.hpp"

namespace gridctl::control {

// The last step of a bag (`finally`) is a command that further attempts of the job itself run when all tasks are over,
// in a working directory with the files that the tasks left. The job's specification says whether an attempt runs tasks
// or the last step, and it changes only while the job waits. So there is never doubt about what an attempt runs,
// whenever a daemon dies.
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

// Workers of a bag leave their hosts for a more urgent job or because the host is being emptied. A worker that is asked
// to leave gets no more tasks and gives back those that it has not begun; the mover stops it when the others have
// ended, or when their time is over. If the reason to leave is gone first, it gets tasks again.
//
// Takes one step for each worker of the bag, and reports in the bag's history what becomes of those that are asked to
// leave. `leader`: the bag's own job.
void look_after_leaving(const Controls& controls, const TrackedJob& leader, BagRun& run);

// Handles tasks that ran out of memory or disk (`retry: {memory: x2}`): they wait for a worker that has more. Such
// workers are made while a host has room for them. When the bag has no other tasks left, the other workers make room,
// and the job itself gets more.

// Returns how many additional workers can be placed now, up to the given number.
[[nodiscard]] std::uint64_t room_for(const Controls& controls, const TrackedJob& leader, std::uint64_t most);
// Takes one step. `members`: ids of the leader and its workers. `most`: the number of workers that the bag may have.
// `make` creates another worker.
void feed_hungry(const Controls& controls, TrackedJob& leader, std::set<std::string> members, BagRun& run, std::uint64_t most,
                 const std::function<void(job::Spec)>& make);

// Returns 1 for the bag's own job.
[[nodiscard]] std::uint32_t worker_number(const TrackedJob& job);
// Returns `spec` for the worker with this number: the worker spends the leader's budget and ends with the leader.
[[nodiscard]] job::Spec worker_spec(const TrackedJob& leader, job::Spec spec, std::uint32_t number);

}  // namespace gridctl::control
