// SPDX-License-Identifier: Apache-2.0
// The part of the registry that is about jobs: what was submitted, their states, and what they may spend.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

// The part of the registry that is about how a job ran: attempts, checkpoints, results, pauses.
class RunRecords {
 public:
  struct Commit {
    Checkpoint checkpoint;
    bool became_head = false;
    job::Step step;
  };
  virtual ~RunRecords() = default;

  [[nodiscard]] virtual Result<std::vector<AttemptRecord>> attempts(const JobId& id) = 0;
  // The twin's newest checkpoint becomes the newest one of the job, which is told that it is done.
  [[nodiscard]] virtual Result<job::Step> take_result(const JobId& id, const JobId& twin,
                                                      const job::TimedEvent& event) = 0;
  // Why no checkpoint of the attempt that runs can be taken, as its host said last; "" when all is well.
  [[nodiscard]] virtual Result<std::string> no_checkpoint(const JobId& id) = 0;
  // Checkpoints. Commits as head only when the job's epoch is still `checkpoint.epoch` (tested in the SQL statement
  // that moves the head); otherwise it is kept as a stray. Sets seq. A repeat of (epoch, host_number), or one that is
  // older than what its epoch has as head already, changes nothing and returns the former row.
  [[nodiscard]] virtual Result<Commit> commit_checkpoint(Checkpoint checkpoint) = 0;
  // Oldest first, strays included.
  [[nodiscard]] virtual Result<std::vector<Checkpoint>> checkpoints(const JobId& id) = 0;
  // nullopt: the head.
  [[nodiscard]] virtual Result<Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) = 0;
  [[nodiscard]] virtual Result<void> set_pinned(const JobId& id, CheckpointSeq seq, bool pinned) = 0;
  [[nodiscard]] virtual Result<void> set_verified(const JobId& id, CheckpointSeq seq, bool verified) = 0;
  // Refused for the head of an unfinished job.
  [[nodiscard]] virtual Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) = 0;
  // Checkpoints that `keep` does not want and that are neither pinned, head, nor the last two: may go.
  [[nodiscard]] virtual Result<std::vector<Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) = 0;
  [[nodiscard]] virtual Result<void> save_results(const Results& results) = 0;  // replaces those of the job
  [[nodiscard]] virtual Result<std::optional<Results>> results(const JobId& id) = 0;
  // The current attempt is paused from then on, unless it is already; and is not any more. `most` is what the user
  // says: it counts although the daemon noticed the pause before the command could record it.
  [[nodiscard]] virtual Result<bool> begin_pause(const JobId& id, WallTime at, std::optional<Duration> most) = 0;
  [[nodiscard]] virtual Result<bool> end_pause(const JobId& id, WallTime at) = 0;
  // nullopt: it has no attempt that is paused.
  [[nodiscard]] virtual Result<std::optional<Pause>> paused(const JobId& id) = 0;
};

struct JobFilter {
  std::vector<job::JobState> states;  // empty = all
  bool active_only = false;           // not final
  std::size_t limit = 0;              // newest so many, 0 = all
};

class JobRecords : public RunRecords {
 public:
  // Jobs by their last change, the oldest first; and what to ask for the next time. Those that changed and not all:
  // 10,000 jobs cost 1.4 s of a core for each commit of another process.
  struct Changes {
    std::int64_t revision = 0;
    std::vector<JobId> jobs;
  };

  // Changes whenever any process commits. Cheap.
  [[nodiscard]] virtual Result<std::int64_t> data_version() = 0;
  // Makes everything that `writes` writes one transaction: each of its own costs a synced file.
  [[nodiscard]] virtual Result<void> together(const std::function<Result<void>()>& writes) = 0;
  // Makes everything that `reads` reads one state of the database, and spares looking for changes between statements.
  // Short: nobody can commit meanwhile. REQUIRES: no transaction is open, and nothing is written.
  [[nodiscard]] virtual Result<void> at_once(const std::function<Result<void>()>& reads) = 0;
  [[nodiscard]] virtual Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                                                 const std::vector<Input>& inputs = {}) = 0;
  [[nodiscard]] virtual Result<std::vector<Input>> inputs(const JobId& id) = 0;
  // Loads the job's state, runs job::step, and commits the new state, records and rows in one transaction.
  [[nodiscard]] virtual Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) = 0;
  [[nodiscard]] virtual Result<void> update_spec(const JobId& id, const job::Spec& spec) = 0;
  // The next attempt runs this; commits `event` in the same transaction.
  [[nodiscard]] virtual Result<job::Step> replace(const JobId& id, const job::Spec& spec,
                                                  const std::vector<Input>& inputs, const job::TimedEvent& event) = 0;
  // A record without a step.
  [[nodiscard]] virtual Result<void> note(const JobId& id, WallTime at, const job::Record& record) = 0;
  // The job an ID of the contract means: id, unique prefix, name (the newest of it), or "@last".
  [[nodiscard]] virtual Result<JobId> resolve(const std::string& id_or_name) = 0;
  [[nodiscard]] virtual Result<Job> job(const JobId& id) = 0;
  [[nodiscard]] virtual Result<std::vector<JobRow>> jobs(const JobFilter& filter) = 0;  // newest first
  [[nodiscard]] virtual Result<std::vector<JobId>> unfinished() = 0;  // State::needs_controller()
  // States of the unfinished jobs that have an attempt now; without what they saved.
  [[nodiscard]] virtual Result<std::vector<job::State>> running() = 0;
  // Returns the jobs whose state or specification has changed after that revision, by whomever, finished or not. 0: all
  // unfinished jobs.
  [[nodiscard]] virtual Result<Changes> changes(std::int64_t after) = 0;
  // Returns the job's use so far, the present attempt counted up to `now`; the money of its twins is its own.
  [[nodiscard]] virtual Result<Spent> spent(const JobId& id, WallTime now) = 0;
  // The host of the last attempt of every job that was ever placed, and its cost as of spent(). For long listings,
  // where a question for each job would take longer than all the rest.
  struct Past {
    HostName host;
    double usd = 0;
  };
  [[nodiscard]] virtual Result<std::map<std::string, Past>> pasts(WallTime now) = 0;
  [[nodiscard]] virtual Result<std::size_t> count_unfinished() = 0;
  [[nodiscard]] virtual Result<std::vector<JobRow>> twins(const JobId& id) = 0;  // that it leads, by number
  // Events after event id `after`, oldest first; at most `limit` (0 = all).
  [[nodiscard]] virtual Result<std::vector<EventRecord>> events(const JobId& id, std::int64_t after,
                                                                std::size_t limit) = 0;
  // Why the scheduler did what it did, newest decision: lines for `job explain`.
  [[nodiscard]] virtual Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) = 0;
  [[nodiscard]] virtual Result<std::vector<std::string>> explanation(const JobId& id) = 0;
  // The newest drill of jobs of that name; one is kept for each name.
  [[nodiscard]] virtual Result<void> save_drill(const Drill& drill) = 0;
  [[nodiscard]] virtual Result<std::optional<Drill>> drill(const std::string& name) = 0;

  // Money.
  [[nodiscard]] virtual Result<void> save_budget(const Budget& budget) = 0;  // replaces that of the same owner
  [[nodiscard]] virtual Result<void> note_used_up(const std::string& owner, const std::string& month) = 0;
  [[nodiscard]] virtual Result<void> remove_budget(const std::string& owner) = 0;  // or there is none
  [[nodiscard]] virtual Result<std::vector<Budget>> budgets() = 0;  // by owner; that of all jobs first
  // Returns the spending of the owner's jobs, or of all jobs when it is empty; the wall time of attempts from `from` on
  // at their hosts' prices.
  [[nodiscard]] virtual Result<Spending> spending(const std::string& owner, WallTime from, WallTime now) = 0;

 protected:
  JobRecords() = default;
  JobRecords(JobRecords&&) noexcept = default;
  JobRecords& operator=(JobRecords&&) noexcept = default;
};

// The id of a job's twin or of a worker of its bag, and back. REQUIRES: number >= 2; `twin` is one's id.
[[nodiscard]] JobId twin_id(const JobId& leader, int number);
[[nodiscard]] JobId leader_of(const JobId& twin);
[[nodiscard]] std::uint32_t twin_number(const JobId& twin);  // 0: it is none
// A further worker of a bag, by what its row says.
[[nodiscard]] bool is_bag_worker(const JobRow& row);

// "JOB[@SEQ]" -> job part and sequence number.
struct CheckpointName {
  std::string job;
  std::optional<CheckpointSeq> seq;
};
[[nodiscard]] Result<CheckpointName> parse_checkpoint_name(const std::string& text);

}  // namespace gridctl::registry
