// SPDX-License-Identifier: Apache-2.0
// The fast registry: the same operations on values. job::step is the real one; the fence of a commit is tested as the
// SQL statement tests it.
#pragma once

#include <deque>
#include <map>

#include "records.hpp"
#include "registry/shared_price.hpp"
#include "support/unasked_records.hpp"

namespace gridctl::sim {

class MemoryRecords : public Backend, public testing::UnaskedRecords {
 public:
  explicit MemoryRecords(Random& random) : random_(random) {}
  [[nodiscard]] std::deque<registry::EventRecord> events(const JobId& id) const {  // of a job, the newest last
    const auto found = rows_.find(id.value);
    return found == rows_.end() ? std::deque<registry::EventRecord>{} : found->second.events;
  }

  // Backend
  registry::AllRecords* records() override { return this; }
  Result<void> open() override { return {}; }
  void close(bool) override {}
  void set_trouble(bool disk_full, bool errors) override { disk_full_ = disk_full, errors_ = errors; }
  Result<void> add_provider(const registry::Provider& provider) override;
  Result<void> save_budget(const registry::Budget& budget) override;

  // Hosts
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
  Result<std::vector<registry::HostLink>> links() override { return std::vector<registry::HostLink>{}; }

  // Jobs
  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                           const std::vector<registry::Input>& inputs) override;
  Result<std::vector<registry::Input>> inputs(const JobId& id) override;
  Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) override;
  Result<job::Step> replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                            const job::TimedEvent& event) override;
  Result<void> update_spec(const JobId& id, const job::Spec& spec) override;
  Result<void> note(const JobId& id, WallTime at, const job::Record& record) override;
  Result<registry::Job> job(const JobId& id) override;
  Result<std::vector<JobId>> unfinished() override;
  Result<Changes> changes(std::int64_t after) override;
  Result<std::vector<registry::AttemptRecord>> attempts(const JobId& id) override;
  Result<std::vector<registry::EventRecord>> events(const JobId& id, std::int64_t after, std::size_t limit) override;
  Result<registry::Spent> spent(const JobId& id, WallTime now) override;
  Result<job::Step> take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) override;
  Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) override;
  Result<Commit> commit_checkpoint(registry::Checkpoint checkpoint) override;
  Result<std::vector<registry::Checkpoint>> checkpoints(const JobId& id) override;
  Result<registry::Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) override;
  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override;
  Result<void> save_results(const registry::Results& results) override;
  Result<std::optional<registry::Results>> results(const JobId& id) override;
  Result<std::vector<registry::Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) override;

  // Money and remotes
  Result<void> note_used_up(const std::string& owner, const std::string& month) override;
  Result<std::vector<registry::Budget>> budgets() override;
  Result<registry::Spending> spending(const std::string& owner, WallTime from, WallTime now) override;
  Result<std::vector<registry::Remote>> remotes() override { return std::vector<registry::Remote>{}; }
  Result<std::vector<registry::Copy>> copies_of(const JobId&) override { return std::vector<registry::Copy>{}; }

 private:
  struct PriceChange {
    AttemptNumber number;
    WallTime at;
    double more = 0;
  };
  struct Row {
    std::uint64_t order = 0;
    std::int64_t revision = 0;
    registry::Job row;  // `machine` is its state
    std::vector<registry::Input> inputs;
    std::vector<registry::AttemptRecord> attempts;
    std::vector<PriceChange> price_changes;
    std::vector<registry::Checkpoint> checkpoints;
    std::optional<registry::Results> results;
    std::vector<std::string> explanation;
    std::deque<registry::EventRecord> events;  // newest last
  };
  [[nodiscard]] Result<void> read() const;
  [[nodiscard]] Result<Row*> find(const JobId& id);
  [[nodiscard]] Result<void> before_commit() const;
  [[nodiscard]] Result<void> after_commit() const;
  void save(Row& row, const job::Step& step, WallTime at);
  void record(Row& row, WallTime at, const job::Record& record);
  [[nodiscard]] registry::SharedPrice shared_in(const JobId& leader, WallTime from, WallTime now) const;
  [[nodiscard]] static double usd_of(const Row& row, WallTime from, WallTime now);
  [[nodiscard]] static CheckpointSeq next_seq(const Row& row);

  Random& random_;
  std::map<std::string, Row> rows_;
  std::map<std::string, registry::Provider> providers_;
  std::map<std::string, registry::Budget> budgets_;
  std::map<std::pair<std::string, std::string>, registry::HostReport> reports_;
  std::map<std::string, std::vector<registry::HostEvent>> host_events_;
  std::map<std::string, std::vector<registry::HostSpan>> spans_;
  std::uint64_t next_order_ = 1;
  std::int64_t next_event_ = 1, revision_ = 0;
  std::map<std::int64_t, std::string> changed_;  // ids by revision
  std::vector<std::pair<std::string, job::Spec>> undo_;  // specifications before what is written together
  bool disk_full_ = false, errors_ = false;
};

}  // namespace gridctl::sim
