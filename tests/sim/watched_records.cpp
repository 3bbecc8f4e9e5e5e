// SPDX-License-Identifier: Apache-2.0
#include "watched_records.hpp"

#include <utility>

#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

using registry::Checkpoint;
using registry::AllRecords;

void WatchedRecords::wait_for_disk() { world_.laptops[static_cast<std::size_t>(laptop_)]->wait_for_disk(); }

void WatchedRecords::tell(const JobId& id, const std::vector<job::Record>& records) {
  for (const job::Record& record : records) world_.truth->told(laptop_, id, record);
  if (!world_.tracing) return;
  for (const job::Record& record : records)
    world_.say("laptop", laptop_, " ", id.value, " [", record.kind, "] ", record.text);
}

void WatchedRecords::once_committed(std::function<void()> then) {
  if (held_) held_->push_back(std::move(then));
  else then();
}

// What is written together counts when all of it is committed.
Result<void> WatchedRecords::together(const std::function<Result<void>()>& writes) {
  if (held_) return Forwarded::together(writes);
  held_.emplace();
  const Result<void> written = Forwarded::together(writes);
  const std::vector<std::function<void()>> held = *std::exchange(held_, std::nullopt);
  if (written)
    for (const std::function<void()>& then : held) then();
  return written;
}

// --- What changes jobs -----------------------------------------------------------------------------------------------

Result<job::Step> WatchedRecords::apply(const JobId& id, const job::TimedEvent& event) {
  const bool resumes = std::holds_alternative<job::ResumeRequested>(event.what);
  if (resumes) world_.truth->may_resume(world_.truth->index(id));  // also when it is told that this failed
  TRY_ASSIGN(job::Step step, Forwarded::apply(id, event));
  once_committed([this, id, event, step, resumes] {
    tell(id, step.records);
    const job::State before = std::exchange(seen_[id.value], step.state);
    if (resumes && !job::is_final(step.state.visible())) world_.truth->resumed(world_.truth->index(id), step.state);
    else world_.truth->stepped(laptop_, before, event.what, step.state);
  });
  return step;
}

Result<job::Step> WatchedRecords::replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                                          const job::TimedEvent& event) {
  const bool resumes = std::holds_alternative<job::ResumeRequested>(event.what);
  if (resumes) world_.truth->may_resume(world_.truth->index(id));
  TRY_ASSIGN(job::Step step, Forwarded::replace(id, spec, inputs, event));
  once_committed([this, id, event, step, resumes] {
    tell(id, step.records);
    const job::State before = std::exchange(seen_[id.value], step.state);
    if (resumes && !job::is_final(step.state.visible())) world_.truth->resumed(world_.truth->index(id), step.state);
    else world_.truth->stepped(laptop_, before, event.what, step.state);
  });
  return step;
}

Result<job::Step> WatchedRecords::take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) {
  TRY_ASSIGN(job::Step step, Forwarded::take_result(id, twin, event));
  once_committed([this, id, event, step] {
    tell(id, step.records);
    const job::State before = std::exchange(seen_[id.value], step.state);
    world_.truth->stepped(laptop_, before, event.what, step.state);
  });
  return step;
}

Result<AllRecords::Commit> WatchedRecords::commit_checkpoint(Checkpoint checkpoint) {
  const JobId id = checkpoint.job;
  const Epoch epoch = checkpoint.epoch;
  TRY_ASSIGN(Commit commit, Forwarded::commit_checkpoint(std::move(checkpoint)));
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
  TRY_ASSIGN(job::Step step, Forwarded::submit(id, spec, at, inputs));
  world_.truth->submitted(world_.truth->index(id));
  seen_[id.value] = step.state;
  return step;
}

Result<void> WatchedRecords::remove_checkpoint(const JobId& id, CheckpointSeq seq) {
  world_.truth->may_go(id, seq);
  TRY(Forwarded::remove_checkpoint(id, seq));
  world_.truth->dropped(laptop_, id, seq);
  return {};
}

// --- What is read ----------------------------------------------------------------------------------------------------

Result<registry::Job> WatchedRecords::job(const JobId& id) {
  Result<registry::Job> row = Forwarded::job(id);
  if (!row) {
    if (row.error().code == Code::not_found && world_.truth->knows(id))
      world_.truth->lost_job(laptop_, id, "not found");
    return row;
  }
  const job::State& state = row->machine;
  // A twin whose submission was committed, and told as failed.
  if (!world_.truth->knows(id)) world_.truth->submitted(world_.truth->index(id));
  world_.truth->looked(laptop_, state);
  if (job::State& seen = seen_[id.value]; !(seen == state)) {
    seen = state;
    if (state.head.value > 0)
      world_.truth->head_is(laptop_, state, Forwarded::checkpoint(id, state.head));
  }
  return row;
}

Result<Checkpoint> WatchedRecords::checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) {
  Result<Checkpoint> found = Forwarded::checkpoint(id, seq);
  if (seq) world_.truth->starts_from(id, *seq, found);
  return found;
}

Result<std::vector<Checkpoint>> WatchedRecords::prunable(const JobId& id, const job::KeepPolicy& keep) {
  if (const auto all = Forwarded::checkpoints(id)) world_.truth->listed(*all);
  return Forwarded::prunable(id, keep);
}

Result<std::int64_t> WatchedRecords::data_version() {
  TRY_ASSIGN(const std::int64_t version, Forwarded::data_version());
  return version + foreign_;
}

Result<void> WatchedRecords::note(const JobId& id, WallTime at, const job::Record& record) {
  tell(id, {record});
  return Forwarded::note(id, at, record);
}

Result<void> WatchedRecords::save_results(const registry::Results& results) {
  TRY(Forwarded::save_results(results));
  world_.truth->results_are(laptop_, results);
  return {};
}

}  // namespace gridctl::sim
