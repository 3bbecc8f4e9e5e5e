// SPDX-License-Identifier: Apache-2.0
#include "watched_records.hpp"

#include <utility>

#include "truth.hpp"

namespace gridctl::sim {

using registry::Checkpoint;
using registry::JobRecords;

namespace {
constexpr double k_kill_rate = 0.002;  // of single operations that write
}

template <class Operation>
auto WatchedRecords::with(Kind kind, Operation operation) -> decltype(operation(std::declval<JobRecords&>())) {
  JobRecords* records = backend_.records();
  if (gone_ || records == nullptr) return make_error(Code::io, "the registry is not open");
  backend_.set_trouble(disk_full_, trouble_);
  const bool kill =
      kind == Kind::writes && !world_.healed && world_.options.kill_point > 0 && random_.chance(k_kill_rate);
  const std::uint64_t where = kill ? random_.below(3) : 3;
  if (where == 0) throw Killed{};
  if (where == 1) backend_.kill_soon();
  auto result = operation(*records);
  // Who was killed has told nobody of its success.
  if (where == 2 || backend_.was_killed()) throw Killed{};
  return result;
}

void WatchedRecords::tell(const JobId& id, const std::vector<job::Record>& records) {
  if (!world_.tracing) return;
  for (const job::Record& record : records)
    world_.say("laptop", laptop_, " ", id.value, " [", record.kind, "] ", record.text);
}

// --- What changes jobs -----------------------------------------------------------------------------------------------

Result<job::Step> WatchedRecords::apply(const JobId& id, const job::TimedEvent& event) {
  const bool resumes = std::holds_alternative<job::ResumeRequested>(event.what);
  if (resumes) world_.truth->may_resume(world_.truth->index(id));  // also when it is told that this failed
  TRY_ASSIGN(job::Step step, with(Kind::writes, [&](JobRecords& r) { return r.apply(id, event); }));
  tell(id, step.records);
  const job::State before = std::exchange(seen_[id.value], step.state);
  if (resumes && !job::is_final(step.state.visible())) world_.truth->resumed(world_.truth->index(id), step.state);
  else world_.truth->stepped(laptop_, before, event.what, step.state);
  return step;
}

Result<job::Step> WatchedRecords::take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) {
  TRY_ASSIGN(job::Step step, with(Kind::writes, [&](JobRecords& r) { return r.take_result(id, twin, event); }));
  tell(id, step.records);
  const job::State before = std::exchange(seen_[id.value], step.state);
  world_.truth->stepped(laptop_, before, event.what, step.state);
  return step;
}

Result<JobRecords::Commit> WatchedRecords::commit_checkpoint(Checkpoint checkpoint) {
  const JobId id = checkpoint.job;
  const Epoch epoch = checkpoint.epoch;
  TRY_ASSIGN(Commit commit,
             with(Kind::writes, [&](JobRecords& r) { return r.commit_checkpoint(std::move(checkpoint)); }));
  const job::State before = std::exchange(seen_[id.value], commit.step.state);
  tell(id, commit.step.records);
  const Checkpoint& kept = commit.checkpoint;
  world_.say("laptop", laptop_, " ", id.value, " checkpoint ", kept.seq.value, " of epoch ", epoch.value,
             commit.became_head ? " is the head" : " is kept aside");
  world_.truth->committed(laptop_, kept, before, commit.became_head);
  if (commit.became_head)
    world_.truth->stepped(laptop_, before, job::CheckpointCommitted{epoch, kept.seq, "", kept.host_number},
                          commit.step.state);
  else world_.truth->looked(laptop_, commit.step.state);
  return commit;
}

// By the daemon: a twin.
Result<job::Step> WatchedRecords::submit(const JobId& id, const job::Spec& spec, WallTime at,
                                         const std::vector<registry::Input>& inputs) {
  world_.add_job({id, laptop_, spec});
  TRY_ASSIGN(job::Step step, with(Kind::writes, [&](JobRecords& r) { return r.submit(id, spec, at, inputs); }));
  world_.truth->submitted(world_.truth->index(id));
  seen_[id.value] = step.state;
  return step;
}

Result<void> WatchedRecords::remove_checkpoint(const JobId& id, CheckpointSeq seq) {
  TRY(with(Kind::writes, [&](JobRecords& r) { return r.remove_checkpoint(id, seq); }));
  world_.truth->dropped(laptop_, id, seq);
  return {};
}

// --- What is read ----------------------------------------------------------------------------------------------------

Result<registry::Job> WatchedRecords::job(const JobId& id) {
  Result<registry::Job> row = with(Kind::reads, [&](JobRecords& r) { return r.job(id); });
  if (!row) {
    if (row.error().code == Code::not_found && world_.truth->knows(id))
      world_.truth->lost_job(laptop_, id, "not found");
    return row;
  }
  const job::State& state = row->machine;
  world_.truth->looked(laptop_, state);
  if (job::State& seen = seen_[id.value]; !(seen == state)) {
    seen = state;
    if (state.head.value > 0)
      world_.truth->head_is(laptop_, state,
                            with(Kind::reads, [&](JobRecords& r) { return r.checkpoint(id, state.head); }));
  }
  return row;
}

Result<Checkpoint> WatchedRecords::checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) {
  Result<Checkpoint> found = with(Kind::reads, [&](JobRecords& r) { return r.checkpoint(id, seq); });
  if (seq) world_.truth->starts_from(id, *seq, found);
  return found;
}

Result<std::vector<Checkpoint>> WatchedRecords::prunable(const JobId& id, const job::KeepPolicy& keep) {
  if (const auto all = with(Kind::reads, [&](JobRecords& r) { return r.checkpoints(id); })) world_.truth->listed(*all);
  return with(Kind::reads, [&](JobRecords& r) { return r.prunable(id, keep); });
}

Result<std::int64_t> WatchedRecords::data_version() {
  TRY_ASSIGN(const std::int64_t version, with(Kind::reads, [](JobRecords& r) { return r.data_version(); }));
  return version + foreign_;
}

// The writes themselves are ours again.
Result<void> WatchedRecords::together(const std::function<Result<void>()>& writes) {
  return with(Kind::writes, [&](JobRecords& r) { return r.together(writes); });
}

// --- The rest as it is -----------------------------------------------------------------------------------------------

Result<void> WatchedRecords::update_provider(const registry::Provider& provider) {
  return with(Kind::writes, [&](JobRecords& r) { return r.update_provider(provider); });
}
Result<void> WatchedRecords::set_liveness(const HostName& name, const std::string& liveness,
                                          std::optional<WallTime> seen) {
  return with(Kind::writes, [&](JobRecords& r) { return r.set_liveness(name, liveness, seen); });
}
Result<std::vector<registry::Provider>> WatchedRecords::providers() {
  return with(Kind::reads, [](JobRecords& r) { return r.providers(); });
}
Result<void> WatchedRecords::save_figures(const HostName& name,
                                          const std::map<std::string, std::optional<double>>& figures) {
  return with(Kind::writes, [&](JobRecords& r) { return r.save_figures(name, figures); });
}
Result<void> WatchedRecords::add_host_event(const registry::HostEvent& event) {
  return with(Kind::writes, [&](JobRecords& r) { return r.add_host_event(event); });
}
Result<std::vector<registry::HostEvent>> WatchedRecords::host_events(const HostName& name, std::size_t limit) {
  return with(Kind::reads, [&](JobRecords& r) { return r.host_events(name, limit); });
}
Result<void> WatchedRecords::save_host_report(const registry::HostReport& report) {
  return with(Kind::writes, [&](JobRecords& r) { return r.save_host_report(report); });
}
Result<std::optional<registry::HostReport>> WatchedRecords::host_report(const HostName& name, const std::string& kind) {
  return with(Kind::reads, [&](JobRecords& r) { return r.host_report(name, kind); });
}
Result<std::vector<registry::HostReport>> WatchedRecords::host_reports(const std::string& kind) {
  return with(Kind::reads, [&](JobRecords& r) { return r.host_reports(kind); });
}
Result<void> WatchedRecords::save_host_span(const registry::HostSpan& span) {
  return with(Kind::writes, [&](JobRecords& r) { return r.save_host_span(span); });
}
Result<std::vector<registry::HostSpan>> WatchedRecords::host_spans(const HostName& name) {
  return with(Kind::reads, [&](JobRecords& r) { return r.host_spans(name); });
}
Result<std::vector<registry::HostLink>> WatchedRecords::links() {
  return with(Kind::reads, [](JobRecords& r) { return r.links(); });
}
Result<std::vector<registry::Input>> WatchedRecords::inputs(const JobId& id) {
  return with(Kind::reads, [&](JobRecords& r) { return r.inputs(id); });
}
Result<void> WatchedRecords::note(const JobId& id, WallTime at, const job::Record& record) {
  tell(id, {record});
  return with(Kind::writes, [&](JobRecords& r) { return r.note(id, at, record); });
}
Result<std::vector<JobId>> WatchedRecords::unfinished() {
  return with(Kind::reads, [](JobRecords& r) { return r.unfinished(); });
}
Result<JobRecords::Changes> WatchedRecords::changes(std::int64_t after) {
  return with(Kind::reads, [&](JobRecords& r) { return r.changes(after); });
}
Result<std::vector<registry::AttemptRecord>> WatchedRecords::attempts(const JobId& id) {
  return with(Kind::reads, [&](JobRecords& r) { return r.attempts(id); });
}
Result<registry::Spent> WatchedRecords::spent(const JobId& id, WallTime now) {
  return with(Kind::reads, [&](JobRecords& r) { return r.spent(id, now); });
}
Result<void> WatchedRecords::save_explanation(const JobId& id, const std::vector<std::string>& lines) {
  return with(Kind::writes, [&](JobRecords& r) { return r.save_explanation(id, lines); });
}
Result<std::vector<Checkpoint>> WatchedRecords::checkpoints(const JobId& id) {
  return with(Kind::reads, [&](JobRecords& r) { return r.checkpoints(id); });
}
Result<void> WatchedRecords::note_used_up(const std::string& owner, const std::string& month) {
  return with(Kind::writes, [&](JobRecords& r) { return r.note_used_up(owner, month); });
}
Result<std::vector<registry::Budget>> WatchedRecords::budgets() {
  return with(Kind::reads, [](JobRecords& r) { return r.budgets(); });
}
Result<registry::Spending> WatchedRecords::spending(const std::string& owner, WallTime from, WallTime now) {
  return with(Kind::reads, [&](JobRecords& r) { return r.spending(owner, from, now); });
}
Result<std::vector<registry::Remote>> WatchedRecords::remotes() {
  return with(Kind::reads, [](JobRecords& r) { return r.remotes(); });
}
Result<std::vector<registry::Copy>> WatchedRecords::copies_of(const JobId& job) {
  return with(Kind::reads, [&](JobRecords& r) { return r.copies_of(job); });
}

}  // namespace gridctl::sim
