// SPDX-License-Identifier: Apache-2.0
// The state directory's database: event log and projections. Several processes may have it open; each call is one
// short transaction. Errors: state_unreadable (damaged, newer schema), state_in_use (locked for over 5 s), no_space.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "os/files.hpp"
#include "registry/hosts.hpp"
#include "registry/job_records.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

struct JobFilter {
  std::vector<job::JobState> states;  // empty = all
  bool active_only = false;           // not final
  std::size_t limit = 0;              // newest so many, 0 = all
};

class Registry : public JobRecords {
 public:
  // Creates the directory (0700) and the database when missing.
  [[nodiscard]] static Result<Registry> open(const os::Path& state_directory);
  // Opens it on a file system of SQLite's, see db::Database::open_on; nothing is made outside it.
  [[nodiscard]] static Result<Registry> open_on(const os::Path& state_directory, const std::string& vfs);
  // Opens it for listings; a missing database is an empty registry in memory, not an error.
  [[nodiscard]] static Result<Registry> open_for_reading(const os::Path& state_directory);
  Registry(Registry&&) noexcept;
  Registry& operator=(Registry&&) noexcept;
  ~Registry() override;

  [[nodiscard]] const os::Path& directory() const;
  [[nodiscard]] Result<ControllerId> controller_id();
  // Changes whenever any process commits. Cheap.
  [[nodiscard]] Result<std::int64_t> data_version() override;

  // Providers.
  [[nodiscard]] Result<void> add_provider(const Provider& provider);  // exists when the name is taken
  [[nodiscard]] Result<void> update_provider(const Provider& provider) override;
  [[nodiscard]] Result<void> set_liveness(const HostName& name, const std::string& liveness,
                                          std::optional<WallTime> seen) override;
  [[nodiscard]] Result<void> remove_provider(const HostName& name);
  [[nodiscard]] Result<Provider> provider(const HostName& name);     // not_found names the nearest
  [[nodiscard]] Result<std::vector<Provider>> providers() override;  // by name
  // Returns the providers that `wanted` takes, by name, with as much of their inventories as queries and listings need.
  // Ten thousand take some 30 ms. `wanted` may add to the figures of the providers that it takes.
  [[nodiscard]] Result<std::vector<Provider>> rows(const std::function<bool(Provider&)>& wanted);
  // Keeps the others. nullopt forgets one. Names are words.
  [[nodiscard]] Result<void> save_figures(const HostName& name,
                                          const std::map<std::string, std::optional<double>>& figures) override;
  // Jobs that have something on this host (current attempt or loose end).
  [[nodiscard]] Result<std::vector<JobId>> jobs_on(const HostName& name);

  // Makes everything that `writes` writes one transaction: each of its own costs a synced file.
  [[nodiscard]] Result<void> together(const std::function<Result<void>()>& writes) override;
  // Makes everything that `reads` reads one state of the database, and spares looking for changes between statements.
  // Short: nobody can commit meanwhile. REQUIRES: no transaction is open, and nothing is written.
  [[nodiscard]] Result<void> at_once(const std::function<Result<void>()>& reads);
  [[nodiscard]] Result<void> add_host_event(const HostEvent& event) override;  // the oldest beyond k_host_events_max go
  // The newest `limit` (0 = all kept), oldest first; of all hosts when `name` is empty.
  [[nodiscard]] Result<std::vector<HostEvent>> host_events(const HostName& name, std::size_t limit) override;
  [[nodiscard]] Result<void> save_host_report(
      const HostReport& report) override;  // replaces the former one of its kind
  [[nodiscard]] Result<std::optional<HostReport>> host_report(const HostName& name, const std::string& kind) override;
  [[nodiscard]] Result<std::vector<HostReport>> host_reports(
      const std::string& kind) override;  // of every host, by name
  // Inserts the span, or replaces the one with the same beginning; the oldest beyond k_host_spans_max go.
  [[nodiscard]] Result<void> save_host_span(const HostSpan& span) override;
  [[nodiscard]] Result<std::vector<HostSpan>> host_spans(const HostName& name) override;  // oldest first
  [[nodiscard]] Result<void> save_link(const HostLink& link);  // keeps the former value of what `link` leaves out
  [[nodiscard]] Result<std::vector<HostLink>> links() override;

  // Jobs.
  [[nodiscard]] Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                                         const std::vector<Input>& inputs = {}) override;
  [[nodiscard]] Result<std::vector<Input>> inputs(const JobId& id) override;
  // Loads the job's state, runs job::step, and commits the new state, records and rows in one transaction.
  [[nodiscard]] Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) override;
  [[nodiscard]] Result<void> update_spec(const JobId& id, const job::Spec& spec);
  // The next attempt runs this; commits `event` in the same transaction.
  [[nodiscard]] Result<job::Step> replace(const JobId& id, const job::Spec& spec, const std::vector<Input>& inputs,
                                          const job::TimedEvent& event) override;
  [[nodiscard]] Result<void> note(const JobId& id, WallTime at,
                                  const job::Record& record) override;  // a record without a step
  // The job an ID of the contract means: id, unique prefix, name (the newest of it), or "@last".
  [[nodiscard]] Result<JobId> resolve(const std::string& id_or_name);
  [[nodiscard]] Result<Job> job(const JobId& id) override;
  [[nodiscard]] Result<std::vector<JobRow>> jobs(const JobFilter& filter);  // newest first
  [[nodiscard]] Result<std::vector<JobId>> unfinished() override;           // State::needs_controller()
  // States of the unfinished jobs that have an attempt now; without what they saved.
  [[nodiscard]] Result<std::vector<job::State>> running();
  // Returns the jobs whose state or specification has changed after that revision, by whomever, finished or not. 0: all
  // unfinished jobs.
  [[nodiscard]] Result<Changes> changes(std::int64_t after) override;
  [[nodiscard]] Result<std::vector<AttemptRecord>> attempts(const JobId& id) override;
  // Returns the job's use so far, the present attempt counted up to `now`; the money of its twins is its own.
  [[nodiscard]] Result<Spent> spent(const JobId& id, WallTime now) override;
  // The host of the last attempt of every job that was ever placed, and its cost as of spent(). For long listings,
  // where a question for each job would take longer than all the rest.
  struct Past {
    HostName host;
    double usd = 0;
  };
  [[nodiscard]] Result<std::map<std::string, Past>> pasts(WallTime now);
  [[nodiscard]] Result<std::size_t> count_unfinished();
  [[nodiscard]] Result<std::vector<JobRow>> twins(const JobId& id);  // that it leads, by number
  // The twin's newest checkpoint becomes the newest one of the job, which is told that it is done.
  [[nodiscard]] Result<job::Step> take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) override;
  // Events after event id `after`, oldest first; at most `limit` (0 = all).
  // Why no checkpoint of the attempt that runs can be taken, as its host said last; "" when all is well.
  [[nodiscard]] Result<std::string> no_checkpoint(const JobId& id);
  [[nodiscard]] Result<std::vector<EventRecord>> events(const JobId& id, std::int64_t after, std::size_t limit);
  // Why the scheduler did what it did, newest decision: lines for `job explain`.
  [[nodiscard]] Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) override;
  [[nodiscard]] Result<std::vector<std::string>> explanation(const JobId& id);
  // The newest drill of jobs of that name; one is kept for each name.
  [[nodiscard]] Result<void> save_drill(const Drill& drill);
  [[nodiscard]] Result<std::optional<Drill>> drill(const std::string& name);

  // Checkpoints. Commits as head only when the job's epoch is still `checkpoint.epoch` (tested in the SQL statement
  // that moves the head); otherwise it is kept as a stray. Sets seq. A repeat of (epoch, host_number), or one that is
  // older than what its epoch has as head already, changes nothing and returns the former row.
  [[nodiscard]] Result<Commit> commit_checkpoint(Checkpoint checkpoint) override;
  [[nodiscard]] Result<std::vector<Checkpoint>> checkpoints(const JobId& id) override;  // oldest first, strays included
  [[nodiscard]] Result<Checkpoint> checkpoint(const JobId& id,
                                              std::optional<CheckpointSeq> seq) override;  // nullopt = head
  [[nodiscard]] Result<void> set_pinned(const JobId& id, CheckpointSeq seq, bool pinned);
  [[nodiscard]] Result<void> set_verified(const JobId& id, CheckpointSeq seq, bool verified);
  [[nodiscard]] Result<void> remove_checkpoint(
      const JobId& id,
      CheckpointSeq seq) override;  // refused for the head of an unfinished job
  // Checkpoints that `keep` does not want and that are neither pinned, head, nor the last two: may go.
  [[nodiscard]] Result<std::vector<Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) override;
  [[nodiscard]] Result<std::vector<Digest>> live_roots();  // of every checkpoint kept, every job's inputs and outputs

  [[nodiscard]] Result<void> save_results(const Results& results) override;  // replaces those of the job
  [[nodiscard]] Result<std::optional<Results>> results(const JobId& id) override;

  // The current attempt is paused from then on, unless it is already; and is not any more. `most` is what the user
  // says: it counts although the daemon noticed the pause before the command could record it.
  [[nodiscard]] Result<bool> begin_pause(const JobId& id, WallTime at, std::optional<Duration> most) override;
  [[nodiscard]] Result<bool> end_pause(const JobId& id, WallTime at) override;
  // nullopt: it has no attempt that is paused.
  [[nodiscard]] Result<std::optional<Pause>> paused(const JobId& id) override;

  // Remotes that keep copies, and what is there.
  [[nodiscard]] Result<void> save_budget(const Budget& budget);  // replaces that of the same owner
  [[nodiscard]] Result<void> note_used_up(const std::string& owner, const std::string& month) override;
  [[nodiscard]] Result<void> remove_budget(const std::string& owner);  // or there is none
  [[nodiscard]] Result<std::vector<Budget>> budgets() override;        // by owner; that of all jobs first
  // Returns the spending of the owner's jobs, or of all jobs when it is empty; the wall time of attempts from `from` on
  // at their hosts' prices.
  [[nodiscard]] Result<Spending> spending(const std::string& owner, WallTime from, WallTime now) override;
  [[nodiscard]] Result<void> add_remote(const Remote& remote);                       // exists when the name is taken
  [[nodiscard]] Result<void> remove_remote(const std::string& name);               // with what is known of its copies
  [[nodiscard]] Result<std::vector<Remote>> remotes() override;                     // in the order they were added
  [[nodiscard]] Result<Remote> remote(const std::string& name);                     // not_found names what there is
  [[nodiscard]] Result<void> note_answer(const std::string& remote, WallTime at);  // ends its trouble
  // The time it began stays as long as the code is the same. True when it is news.
  [[nodiscard]] Result<bool> note_trouble(const std::string& remote, WallTime at, const Error& error);
  [[nodiscard]] Result<void> add_copy(const Copy& copy);
  [[nodiscard]] Result<void> remove_copy(const Copy& copy);
  [[nodiscard]] Result<std::vector<Copy>> copies();                              // by remote, job and number
  [[nodiscard]] Result<std::vector<Copy>> copies_of(const JobId& job) override;  // the same, of one job
  [[nodiscard]] Result<std::vector<CheckpointRef>> kept_checkpoints();           // of every job, strays included
  // Every checkpoint that is kept and worth a copy (strays only when pinned), with what its job asks for; newest first.
  [[nodiscard]] Result<std::vector<CopyWanted>> copyable();

 private:
  struct Impl;
  explicit Registry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
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
