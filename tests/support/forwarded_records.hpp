// SPDX-License-Identifier: Apache-2.0
// Records on the way to others. `Self` has `pass(point, subject, operation)` for what writes and `look(operation)` for
// what reads: each calls the operation with the records behind it, or does not.
#pragma once

#include "support/fault_points.hpp"
#include "support/unasked_records.hpp"

namespace gridctl::testing {

template <class Self>
class ForwardedRecords : public UnaskedRecords {
  using Records = registry::AllRecords;
  using Figures = std::map<std::string, std::optional<double>>;

 public:
  Result<void> update_provider(const registry::Provider& p) override {
    return pass(Point::records_update_provider, p.name.value, [&](Records& r) { return r.update_provider(p); });
  }
  Result<void> set_liveness(const HostName& name, const std::string& word, std::optional<WallTime> seen) override {
    return pass(Point::records_set_liveness, name.value, [&](Records& r) { return r.set_liveness(name, word, seen); });
  }
  Result<void> save_figures(const HostName& name, const Figures& figures) override {
    return pass(Point::records_save_figures, name.value, [&](Records& r) { return r.save_figures(name, figures); });
  }
  Result<void> together(const std::function<Result<void>()>& writes) override {
    return pass(Point::records_together, "", [&](Records& r) { return r.together(writes); });
  }
  Result<void> add_host_event(const registry::HostEvent& event) override {
    return pass(Point::records_add_host_event, event.provider.value, [&](Records& r) { return r.add_host_event(event); });
  }
  Result<void> save_host_report(const registry::HostReport& report) override {
    return pass(Point::records_save_host_report, report.provider.value, [&](Records& r) { return r.save_host_report(report); });
  }
  Result<void> save_host_span(const registry::HostSpan& span) override {
    return pass(Point::records_save_host_span, span.provider.value, [&](Records& r) { return r.save_host_span(span); });
  }
  Result<job::Step> submit(const JobId& id, const job::Spec& spec, WallTime at,
                           const std::vector<registry::Input>& inputs) override {
    return pass(Point::records_submit, id.value, [&](Records& r) { return r.submit(id, spec, at, inputs); });
  }
  Result<job::Step> apply(const JobId& id, const job::TimedEvent& event) override {
    return pass(Point::records_apply, id.value, [&](Records& r) { return r.apply(id, event); });
  }
  Result<job::Step> replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                            const job::TimedEvent& event) override {
    return pass(Point::records_replace, id.value, [&](Records& r) { return r.replace(id, spec, inputs, event); });
  }
  Result<void> note(const JobId& id, WallTime at, const job::Record& record) override {
    return pass(Point::records_note, id.value, [&](Records& r) { return r.note(id, at, record); });
  }
  Result<job::Step> take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) override {
    return pass(Point::records_take_result, id.value, [&](Records& r) { return r.take_result(id, twin, event); });
  }
  Result<void> save_explanation(const JobId& id, const std::vector<std::string>& lines) override {
    return pass(Point::records_save_explanation, id.value, [&](Records& r) { return r.save_explanation(id, lines); });
  }
  Result<Commit> commit_checkpoint(registry::Checkpoint checkpoint) override {
    const std::string id = checkpoint.job.value;
    return pass(Point::records_commit_checkpoint, id,
                [&](Records& r) { return r.commit_checkpoint(std::move(checkpoint)); });
  }
  Result<void> remove_checkpoint(const JobId& id, CheckpointSeq seq) override {
    return pass(Point::records_remove_checkpoint, id.value, [&](Records& r) { return r.remove_checkpoint(id, seq); });
  }
  Result<void> save_results(const registry::Results& results) override {
    return pass(Point::records_save_results, results.job.value, [&](Records& r) { return r.save_results(results); });
  }
  Result<void> note_used_up(const std::string& owner, const std::string& month) override {
    return pass(Point::records_note_used_up, owner, [&](Records& r) { return r.note_used_up(owner, month); });
  }

  Result<bool> begin_pause(const JobId& id, WallTime at, std::optional<Duration> most) override {
    return pass(Point::records_begin_pause, id.value, [&](Records& r) { return r.begin_pause(id, at, most); });
  }
  Result<bool> end_pause(const JobId& id, WallTime at) override {
    return pass(Point::records_end_pause, id.value, [&](Records& r) { return r.end_pause(id, at); });
  }

  Result<std::int64_t> data_version() override {
    return look([](Records& r) { return r.data_version(); });
  }
  Result<std::vector<registry::Provider>> providers() override {
    return look([](Records& r) { return r.providers(); });
  }
  Result<std::vector<registry::HostEvent>> host_events(const HostName& name, std::size_t limit) override {
    return look([&](Records& r) { return r.host_events(name, limit); });
  }
  Result<std::optional<registry::HostReport>> host_report(const HostName& name, const std::string& kind) override {
    return look([&](Records& r) { return r.host_report(name, kind); });
  }
  Result<std::vector<registry::HostReport>> host_reports(const std::string& kind) override {
    return look([&](Records& r) { return r.host_reports(kind); });
  }
  Result<std::vector<registry::HostSpan>> host_spans(const HostName& name) override {
    return look([&](Records& r) { return r.host_spans(name); });
  }
  Result<std::vector<registry::HostLink>> links() override {
    return look([](Records& r) { return r.links(); });
  }
  Result<std::vector<registry::Input>> inputs(const JobId& id) override {
    return look([&](Records& r) { return r.inputs(id); });
  }
  Result<registry::Job> job(const JobId& id) override {
    return look([&](Records& r) { return r.job(id); });
  }
  Result<std::vector<JobId>> unfinished() override {
    return look([](Records& r) { return r.unfinished(); });
  }
  Result<Changes> changes(std::int64_t after) override {
    return look([&](Records& r) { return r.changes(after); });
  }
  Result<std::vector<registry::AttemptRecord>> attempts(const JobId& id) override {
    return look([&](Records& r) { return r.attempts(id); });
  }
  Result<registry::Spent> spent(const JobId& id, WallTime now) override {
    return look([&](Records& r) { return r.spent(id, now); });
  }
  Result<std::vector<registry::Checkpoint>> checkpoints(const JobId& id) override {
    return look([&](Records& r) { return r.checkpoints(id); });
  }
  Result<registry::Checkpoint> checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) override {
    return look([&](Records& r) { return r.checkpoint(id, seq); });
  }
  Result<std::vector<registry::Checkpoint>> prunable(const JobId& id, const job::KeepPolicy& keep) override {
    return look([&](Records& r) { return r.prunable(id, keep); });
  }
  Result<std::optional<registry::Results>> results(const JobId& id) override {
    return look([&](Records& r) { return r.results(id); });
  }
  Result<std::optional<registry::Pause>> paused(const JobId& id) override {
    return look([&](Records& r) { return r.paused(id); });
  }
  Result<std::vector<registry::Budget>> budgets() override {
    return look([](Records& r) { return r.budgets(); });
  }
  Result<registry::Spending> spending(const std::string& owner, WallTime from, WallTime now) override {
    return look([&](Records& r) { return r.spending(owner, from, now); });
  }
  Result<std::vector<registry::Remote>> remotes() override {
    return look([](Records& r) { return r.remotes(); });
  }
  Result<std::vector<registry::Copy>> copies_of(const JobId& job) override {
    return look([&](Records& r) { return r.copies_of(job); });
  }

 private:
  template <class Operation>
  auto pass(Point point, const std::string& subject, Operation operation) {
    return static_cast<Self*>(this)->pass(point, subject, std::move(operation));
  }
  template <class Operation>
  auto look(Operation operation) {
    return static_cast<Self*>(this)->look(std::move(operation));
  }
};

// Operations that fail as a test has said, each once: by point, in turn.
class FailingRecords : public ForwardedRecords<FailingRecords> {
 public:
  explicit FailingRecords(registry::AllRecords& behind) : behind_(behind) {}
  std::map<Point, std::vector<Fate>> fates;
  std::function<void(Point)> passing = [](Point) {};

  template <class Operation>
  auto pass(Point point, const std::string&, Operation operation) -> decltype(operation(std::declval<registry::AllRecords&>())) {
    passing(point);
    std::vector<Fate>& turns = fates[point];
    const Fate fate = turns.empty() ? Fate::well : turns.front();
    if (!turns.empty()) turns.erase(turns.begin());
    if (fate == Fate::fails) return make_error(Code::io, "the disk fails");
    auto done = operation(behind_);
    if (fate == Fate::lost) return make_error(Code::io, "the disk fails at the end");
    return done;
  }
  template <class Operation>
  auto look(Operation operation) {
    return operation(behind_);
  }

 private:
  registry::AllRecords& behind_;
};

}  // namespace gridctl::testing
