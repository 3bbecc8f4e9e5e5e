// SPDX-License-Identifier: Apache-2.0
// What the daemon asks of its registry, on the way to it: Truth hears of all that was applied, and here the process may
// be killed, before an operation, amid its writes, or when it is done and nobody was told.
#pragma once

#include <functional>
#include <map>

#include "records.hpp"
#include "world.hpp"

namespace gridctl::sim {

class WatchedRecords : public registry::JobRecords {
 public:
  // `disk_full`, `trouble`: of the laptop.
  WatchedRecords(World& world, int laptop, Backend& backend, Random& random, const bool& disk_full, const bool& trouble)
      : world_(world), laptop_(laptop), backend_(backend), random_(random), disk_full_(disk_full), trouble_(trouble) {}

  // Another process has written; its own operations are not killed.
  void others_wrote() { ++foreign_; }
  template <class Operation>
  auto by_user(Operation operation);
  // The daemon's life: after its end nothing is read or written any more. A new one knows nothing.
  void open() { gone_ = false, seen_.clear(); }
  void close() { gone_ = true; }

  Result<std::int64_t> data_version() override;
  Result<void> update_provider(const registry::Provider& provider) override;
  Result<void> set_liveness(const HostName& name, const std::string& liveness, std::optional<WallTime> seen) override;
  Result<std::vector<registry::Provider>> providers() override;
  Result<void> save_figures(const HostName& name, const std::map<std::string, std::optional<double>>& figures) override;
  Result<void> together(const std::function<Result<void>()>& writes) override;
  Result<void> add_host_event(const registry::HostEvent& event) override;
  Result<std::vector<registry::HostEvent>> host_events(const HostName& name, std::size_t limit) override;
  Result<void> save_host_report(const registry::HostReport& report) override;
  Result<std::optional<registry::HostReport>> host_report(const HostName& name, const std::string& kind) override;
  Result<std::vector<registry::HostReport>> host_reports(const std::string& kind) override;
  Result<void> save_host_span(const registry::HostSpan& span) override;
  Result<std::vector<registry::HostSpan>> host_spans(const HostName& name) override;
  Result<std::vector<registry::HostLink>> links() override;
  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                           const std::vector<registry::Input>& inputs) override;
  Result<std::vector<registry::Input>> inputs(const JobId& id) override;
  Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) override;
  Result<void> note(const JobId& id, WallTime at, const job::Record& record) override;
  Result<registry::Job> job(const JobId& id) override;
  Result<std::vector<JobId>> unfinished() override;
  Result<Changes> changes(std::int64_t after) override;
  Result<std::vector<registry::AttemptRecord>> attempts(const JobId& id) override;
  Result<registry::Spent> spent(const JobId& id, WallTime now) override;
  Result<job::Step> take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) override;
  Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) override;
  Result<Commit> commit_checkpoint(registry::Checkpoint checkpoint) override;
  Result<std::vector<registry::Checkpoint>> checkpoints(const JobId& id) override;
  Result<registry::Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) override;
  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override;
  Result<std::vector<registry::Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) override;
  Result<void> note_used_up(const std::string& owner, const std::string& month) override;
  Result<std::vector<registry::Budget>> budgets() override;
  Result<registry::Spending> spending(const std::string& owner, WallTime from, WallTime now) override;
  Result<std::vector<registry::Remote>> remotes() override;
  Result<std::vector<registry::Copy>> copies_of(const JobId& job) override;

 private:
  enum class Kind : std::uint8_t { reads, writes };
  template <class Operation>
  auto with(Kind kind, Operation operation) -> decltype(operation(std::declval<registry::JobRecords&>()));
  void tell(const JobId& id, const std::vector<job::Record>& records);

  World& world_;
  const int laptop_;
  Backend& backend_;
  Random& random_;
  const bool &disk_full_, &trouble_;
  std::int64_t foreign_ = 1;
  bool gone_ = true;
  std::map<std::string, job::State> seen_;  // what the daemon was told last
};

template <class Operation>
auto WatchedRecords::by_user(Operation operation) {
  backend_.set_trouble(disk_full_, trouble_);
  auto result = operation(*backend_.records());
  if (result) others_wrote();
  return result;
}

}  // namespace gridctl::sim
