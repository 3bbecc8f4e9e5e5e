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
#include "registry/all_records.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

class Registry : public AllRecords {
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

  // AllRecords, whose contracts stand in its parts.
  Result<ControllerId> controller_id() override;
  Result<std::int64_t> data_version() override;
  Result<void> add_provider(const Provider& provider) override;
  Result<void> update_provider(const Provider& provider) override;
  Result<void> set_liveness(const HostName& name, const std::string& liveness, std::optional<WallTime> seen) override;
  Result<void> remove_provider(const HostName& name) override;
  Result<Provider> provider(const HostName& name) override;
  Result<std::vector<Provider>> providers() override;
  Result<std::vector<Provider>> rows(const std::function<bool(Provider&)>& wanted) override;
  Result<void> save_figures(const HostName& name, const std::map<std::string, std::optional<double>>& figures) override;
  Result<std::vector<JobId>> jobs_on(const HostName& name) override;
  Result<void> together(const std::function<Result<void>()>& writes) override;
  Result<void> at_once(const std::function<Result<void>()>& reads) override;
  Result<void> add_host_event(const HostEvent& event) override;
  Result<std::vector<HostEvent>> host_events(const HostName& name, std::size_t limit) override;
  Result<void> save_host_report(const HostReport& report) override;
  Result<std::optional<HostReport>> host_report(const HostName& name, const std::string& kind) override;
  Result<std::vector<HostReport>> host_reports(const std::string& kind) override;
  Result<void> save_host_span(const HostSpan& span) override;
  Result<std::vector<HostSpan>> host_spans(const HostName& name) override;
  Result<void> save_link(const HostLink& link) override;
  Result<std::vector<HostLink>> links() override;
  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                           const std::vector<Input>& inputs = {}) override;
  Result<std::vector<Input>> inputs(const JobId& id) override;
  Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) override;
  Result<void> update_spec(const JobId& id, const job::Spec& spec) override;
  Result<job::Step> replace(const JobId& id, const job::Spec& spec, const std::vector<Input>& inputs,
                            const job::TimedEvent& event) override;
  Result<void> note(const JobId& id, WallTime at, const job::Record& record) override;
  Result<JobId> resolve(const std::string& id_or_name) override;
  Result<Job> job(const JobId& id) override;
  Result<std::vector<JobRow>> jobs(const JobFilter& filter) override;
  Result<std::vector<JobId>> unfinished() override;
  Result<std::vector<job::State>> running() override;
  Result<Changes> changes(std::int64_t after) override;
  Result<std::vector<AttemptRecord>> attempts(const JobId& id) override;
  Result<Spent> spent(const JobId& id, WallTime now) override;
  Result<std::map<std::string, Past>> pasts(WallTime now) override;
  Result<std::size_t> count_unfinished() override;
  Result<std::vector<JobRow>> twins(const JobId& id) override;
  Result<job::Step> take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) override;
  Result<std::string> no_checkpoint(const JobId& id) override;
  Result<std::vector<EventRecord>> events(const JobId& id, std::int64_t after, std::size_t limit) override;
  Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) override;
  Result<std::vector<std::string>> explanation(const JobId& id) override;
  Result<void> save_drill(const Drill& drill) override;
  Result<std::optional<Drill>> drill(const std::string& name) override;
  Result<Commit> commit_checkpoint(Checkpoint checkpoint) override;
  Result<std::vector<Checkpoint>> checkpoints(const JobId& id) override;
  Result<Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) override;
  Result<void> set_pinned(const JobId& id, CheckpointSeq seq, bool pinned) override;
  Result<void> set_verified(const JobId& id, CheckpointSeq seq, bool verified) override;
  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override;
  Result<std::vector<Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) override;
  Result<std::vector<Digest>> live_roots() override;
  Result<void> save_results(const Results& results) override;
  Result<std::optional<Results>> results(const JobId& id) override;
  Result<bool> begin_pause(const JobId& id, WallTime at, std::optional<Duration> most) override;
  Result<bool> end_pause(const JobId& id, WallTime at) override;
  Result<std::optional<Pause>> paused(const JobId& id) override;
  Result<void> save_budget(const Budget& budget) override;
  Result<void> note_used_up(const std::string& owner, const std::string& month) override;
  Result<void> remove_budget(const std::string& owner) override;
  Result<std::vector<Budget>> budgets() override;
  Result<Spending> spending(const std::string& owner, WallTime from, WallTime now) override;
  Result<void> add_remote(const Remote& remote) override;
  Result<void> remove_remote(const std::string& name) override;
  Result<std::vector<Remote>> remotes() override;
  Result<Remote> remote(const std::string& name) override;
  Result<void> note_answer(const std::string& remote, WallTime at) override;
  Result<bool> note_trouble(const std::string& remote, WallTime at, const Error& error) override;
  Result<void> add_copy(const Copy& copy) override;
  Result<void> remove_copy(const Copy& copy) override;
  Result<std::vector<Copy>> copies() override;
  Result<std::vector<Copy>> copies_of(const JobId& job) override;
  Result<std::vector<CheckpointRef>> kept_checkpoints() override;
  Result<std::vector<CopyWanted>> copyable() override;

 private:
  struct Impl;
  explicit Registry(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gridctl::registry
