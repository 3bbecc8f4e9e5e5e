// SPDX-License-Identifier: Apache-2.0
// The controller's questions to the registry and its records in it, as an interface: SQLite in the daemon (Registry),
// values in the simulator. Contracts and errors stand at Registry's members.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "registry/hosts.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

class JobRecords {
 public:
  struct Commit {
    Checkpoint checkpoint;
    bool became_head = false;
    job::Step step;
  };
  // Jobs by their last change, the oldest first; and what to ask for the next time. Those that changed and not all:
  // 10,000 jobs cost 1.4 s of a core for each commit of another process.
  struct Changes {
    std::int64_t revision = 0;
    std::vector<JobId> jobs;
  };
  virtual ~JobRecords() = default;

  [[nodiscard]] virtual Result<std::int64_t> data_version() = 0;
  [[nodiscard]] virtual Result<void> update_provider(const Provider& provider) = 0;
  [[nodiscard]] virtual Result<void> set_liveness(const HostName& name, const std::string& liveness,
                                                  std::optional<WallTime> seen) = 0;
  [[nodiscard]] virtual Result<std::vector<Provider>> providers() = 0;
  [[nodiscard]] virtual Result<void> save_figures(const HostName& name,
                                                  const std::map<std::string, std::optional<double>>& figures) = 0;
  [[nodiscard]] virtual Result<void> together(const std::function<Result<void>()>& writes) = 0;
  [[nodiscard]] virtual Result<void> add_host_event(const HostEvent& event) = 0;
  [[nodiscard]] virtual Result<std::vector<HostEvent>> host_events(const HostName& name, std::size_t limit) = 0;
  [[nodiscard]] virtual Result<void> save_host_report(const HostReport& report) = 0;
  [[nodiscard]] virtual Result<std::optional<HostReport>> host_report(const HostName& name,
                                                                      const std::string& kind) = 0;
  [[nodiscard]] virtual Result<std::vector<HostReport>> host_reports(const std::string& kind) = 0;
  [[nodiscard]] virtual Result<void> save_host_span(const HostSpan& span) = 0;
  [[nodiscard]] virtual Result<std::vector<HostSpan>> host_spans(const HostName& name) = 0;
  [[nodiscard]] virtual Result<std::vector<HostLink>> links() = 0;
  [[nodiscard]] virtual Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                                                 const std::vector<Input>& inputs) = 0;
  [[nodiscard]] virtual Result<std::vector<Input>> inputs(const JobId& id) = 0;
  [[nodiscard]] virtual Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) = 0;
  [[nodiscard]] virtual Result<job::Step> replace(const JobId& id, const job::Spec& spec,
                                                  const std::vector<Input>& inputs, const job::TimedEvent& event) = 0;
  [[nodiscard]] virtual Result<void> note(const JobId& id, WallTime at, const job::Record& record) = 0;
  [[nodiscard]] virtual Result<Job> job(const JobId& id) = 0;
  [[nodiscard]] virtual Result<std::vector<JobId>> unfinished() = 0;
  [[nodiscard]] virtual Result<Changes> changes(std::int64_t after) = 0;
  [[nodiscard]] virtual Result<std::vector<AttemptRecord>> attempts(const JobId& id) = 0;
  [[nodiscard]] virtual Result<Spent> spent(const JobId& id, WallTime now) = 0;
  [[nodiscard]] virtual Result<job::Step> take_result(const JobId& id, const JobId& twin,
                                                      const job::TimedEvent& event) = 0;
  [[nodiscard]] virtual Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) = 0;
  [[nodiscard]] virtual Result<Commit> commit_checkpoint(Checkpoint checkpoint) = 0;
  [[nodiscard]] virtual Result<std::vector<Checkpoint>> checkpoints(const JobId& id) = 0;
  [[nodiscard]] virtual Result<Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) = 0;
  [[nodiscard]] virtual Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) = 0;
  [[nodiscard]] virtual Result<std::vector<Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) = 0;
  // Saves the files that jobs leave in their working directories; implementations without results keep none.
  [[nodiscard]] virtual Result<void> save_results(const Results&) { return {}; }
  [[nodiscard]] virtual Result<std::optional<Results>> results(const JobId&) { return std::optional<Results>(); }
  // A pause of the attempt that runs, and its end. They return whether they changed anything: the daemon and a command
  // may both see a pause, only one of them begins it, and an attempt that has ended cannot be paused. By default, no
  // time of pauses is kept.
  [[nodiscard]] virtual Result<bool> begin_pause(const JobId&, WallTime, std::optional<Duration>) { return true; }
  [[nodiscard]] virtual Result<bool> end_pause(const JobId&, WallTime) { return true; }
  [[nodiscard]] virtual Result<std::optional<Pause>> paused(const JobId&) { return std::optional<Pause>(); }
  [[nodiscard]] virtual Result<void> note_used_up(const std::string& owner, const std::string& month) = 0;
  [[nodiscard]] virtual Result<std::vector<Budget>> budgets() = 0;
  [[nodiscard]] virtual Result<Spending> spending(const std::string& owner, WallTime from, WallTime now) = 0;
  [[nodiscard]] virtual Result<std::vector<Remote>> remotes() = 0;
  [[nodiscard]] virtual Result<std::vector<Copy>> copies_of(const JobId& job) = 0;

 protected:
  JobRecords() = default;
  JobRecords(JobRecords&&) noexcept = default;
  JobRecords& operator=(JobRecords&&) noexcept = default;
};

}  // namespace gridctl::registry
