// SPDX-License-Identifier: Apache-2.0
// Jobs and their checkpoints.
#include "memory_records.hpp"

#include <algorithm>
#include <utility>

#include "job/going_back.hpp"
#include "registry/registry.hpp"

namespace gridctl::sim {

using registry::AttemptRecord;
using registry::Checkpoint;

namespace {
constexpr std::size_t k_events_max = 100;  // of a job
constexpr std::size_t k_newest_kept = 2;
}  // namespace

Result<void> MemoryRecords::read() const {
  if (errors_ && random_.chance(0.2)) return make_error(Code::io, "the registry cannot be read");
  return {};
}

Result<MemoryRecords::Row*> MemoryRecords::find(const JobId& id) {
  TRY(read());
  const auto found = rows_.find(id.value);
  if (found == rows_.end()) return make_error(Code::not_found, "no job " + id.value);
  Row& row = found->second;
  auto& saved = row.row.machine.saved.list;
  saved.clear();
  for (const Checkpoint& c : row.checkpoints) {
    if (c.stray || c.torn) continue;
    const auto maker = std::find_if(row.attempts.begin(), row.attempts.end(),
                                    [&](const AttemptRecord& one) { return one.number == c.attempt; });
    saved.push_back({c.seq, c.attempt, maker == row.attempts.end() ? HostName{} : maker->provider, c.provisional, c.as_left});
  }
  return &row;
}

Result<void> MemoryRecords::before_commit() const {
  if (disk_full_) return make_error(Code::no_space, "the disk is full");
  if (errors_ && random_.chance(0.3)) return make_error(Code::io, "the commit failed");
  return {};
}

// It is there, but who asked for it is not told so.
Result<void> MemoryRecords::after_commit() const {
  if (errors_ && random_.chance(0.2)) return make_error(Code::io, "the end of the commit failed");
  return {};
}

void MemoryRecords::record(Row& row, WallTime at, const job::Record& one) {
  row.events.push_back(
      {next_event_++, row.row.id, at, one.kind, one.text, one.epoch, row.row.machine.attempts, one.host});
  if (row.events.size() > k_events_max) row.events.pop_front();
}

void MemoryRecords::save(Row& row, const job::Step& step, WallTime at) {
  changed_.erase(std::exchange(row.revision, ++revision_));
  changed_.emplace(row.revision, row.row.id.value);
  const job::State& s = row.row.machine = step.state;
  const auto* done = std::get_if<job::Done>(&s.phase);
  row.row.state = s.visible();
  row.row.reason = s.reason;
  row.row.provider = s.attempt() != nullptr ? s.attempt()->lead().host : HostName{};
  row.row.exit_code = done != nullptr ? done->exit_code : std::nullopt;
  row.row.recoveries = s.recoveries;
  row.row.ended_at = done != nullptr ? std::optional{done->at} : std::nullopt;
  for (const job::Record& one : step.records) record(row, at, one);
  for (const job::AttemptRow& one : step.attempts) {
    const job::Attempt& a = one.attempt;
    auto known = std::find_if(row.attempts.begin(), row.attempts.end(),
                              [&](const AttemptRecord& had) { return had.number == a.number; });
    if (known == row.attempts.end()) {
      AttemptRecord fresh;
      fresh.number = a.number;
      fresh.epoch = a.epoch;
      fresh.provider = a.lead().host;
      fresh.placement_reason = a.placement_reason;
      for (const job::Member& member : a.members) fresh.price_per_hour += member.price_per_hour;
      fresh.resumed_from = a.resumed_from;
      known = row.attempts.insert(row.attempts.end(), std::move(fresh));
    }
    known->state = one.state;
    known->reason = one.reason;
    known->started_at = a.started_at;
    known->ended_at = one.ended_at;
    known->exit_code = one.exit_code;
  }
}

Result<job::Step> MemoryRecords::submit(const JobId& id, const job::Spec& spec, WallTime at,
                                        const std::vector<registry::Input>& inputs) {
  TRY(before_commit());
  if (rows_.contains(id.value)) return make_error(Code::exists, "there is a job " + id.value);
  job::Step step = job::submitted(id, spec, at);
  Row& row = rows_[id.value];
  row.order = next_order_++;
  row.row.id = id;
  row.row.name = spec.name;
  row.row.spec = spec;
  row.row.submitted_at = at;
  row.inputs = inputs;
  save(row, step, at);
  TRY(after_commit());
  return step;
}

Result<std::vector<registry::Input>> MemoryRecords::inputs(const JobId& id) {
  TRY_ASSIGN(const Row* row, find(id));
  return row->inputs;
}

Result<job::Step> MemoryRecords::apply(const JobId& id, const job::TimedEvent& event) {
  TRY_ASSIGN(Row * row, find(id));
  const double price = row->row.machine.price_per_hour();
  job::Step step = job::step(row->row.machine, event);
  if (step.state == row->row.machine && step.records.empty() && step.attempts.empty()) return step;
  TRY(before_commit());
  save(*row, step, event.at);
  if (std::holds_alternative<job::PriceChanged>(event.what))
    row->price_changes.push_back({step.state.attempts, event.at, step.state.price_per_hour() - price});
  TRY(after_commit());
  return step;
}

Result<job::Step> MemoryRecords::replace(const JobId& id, const job::Spec& spec, const std::vector<registry::Input>& inputs,
                                         const job::TimedEvent& event) {
  TRY_ASSIGN(Row * row, find(id));
  TRY(before_commit());
  job::Step step = job::step(row->row.machine, event);
  row->row.spec = spec;
  row->inputs = inputs;
  save(*row, step, event.at);
  TRY(after_commit());
  return step;
}

// Together with others only.
Result<void> MemoryRecords::update_spec(const JobId& id, const job::Spec& spec) {
  TRY_ASSIGN(Row * row, find(id));
  TRY(read());
  undo_.emplace_back(id.value, std::exchange(row->row.spec, spec));
  return {};
}

Result<void> MemoryRecords::note(const JobId& id, WallTime at, const job::Record& one) {
  TRY_ASSIGN(Row * row, find(id));
  TRY(before_commit());
  record(*row, at, one);
  return after_commit();
}

Result<registry::Job> MemoryRecords::job(const JobId& id) {
  TRY_ASSIGN(const Row* row, find(id));
  return row->row;
}

Result<std::vector<JobId>> MemoryRecords::unfinished() {
  TRY(read());
  std::vector<const Row*> rows;
  for (const auto& [id, row] : rows_)
    if (row.row.machine.needs_controller()) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) { return a->order < b->order; });
  std::vector<JobId> ids;
  for (const Row* row : rows) ids.push_back(row->row.id);
  return ids;
}

Result<registry::AllRecords::Changes> MemoryRecords::changes(std::int64_t after) {
  Changes out{revision_, {}};
  if (after > 0) {
    TRY(read());
    for (auto at = changed_.upper_bound(after); at != changed_.end(); ++at) out.jobs.push_back({at->second});
    return out;
  }
  TRY_ASSIGN(out.jobs, unfinished());
  return out;
}

Result<std::vector<AttemptRecord>> MemoryRecords::attempts(const JobId& id) {
  TRY_ASSIGN(const Row* row, find(id));
  return row->attempts;
}

Result<std::vector<registry::EventRecord>> MemoryRecords::events(const JobId& id, std::int64_t after, std::size_t limit) {
  std::vector<registry::EventRecord> found;
  for (const registry::EventRecord& one : events(id))
    if (one.id > after && (limit == 0 || found.size() < limit)) found.push_back(one);
  return found;
}

Result<job::Step> MemoryRecords::take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) {
  TRY_ASSIGN(Row * row, find(id));
  TRY_ASSIGN(const Row* theirs, find(twin));
  job::Step step = job::step(row->row.machine, event);
  if (step.state == row->row.machine) return step;
  TRY(before_commit());
  save(*row, step, event.at);
  for (const Checkpoint& newest : theirs->checkpoints) {
    if (newest.seq != theirs->row.machine.head) continue;
    Checkpoint c = newest;
    c.job = id;
    c.epoch = step.state.epoch;
    c.attempt = step.state.attempts;
    c.host_number = 0;
    c.pinned = false;
    c.seq = next_seq(*row);
    const job::Step headed = job::step(step.state, {event.at, job::CheckpointCommitted{c.epoch, c.seq, "", 0}});
    row->checkpoints.push_back(std::move(c));
    save(*row, headed, event.at);
    step.state = headed.state;
    break;
  }
  TRY(after_commit());
  return step;
}

Result<void> MemoryRecords::save_explanation(const JobId& id, const std::vector<std::string>& lines) {
  TRY_ASSIGN(Row * row, find(id));
  TRY(before_commit());
  row->explanation = lines;
  return after_commit();
}

namespace {
// As the real one.
bool waits_behind(const job::State& state, const Checkpoint& c) {
  if (!c.provisional || c.epoch != state.epoch) return false;
  if (c.torn) return true;
  const CheckpointSeq best = state.is_suspect(state.head) ? state.start() : state.head;
  return std::ranges::any_of(state.saved.list, [&](const job::Saved& one) {
    return one.seq == best && (c.as_left ? !one.as_left : !one.provisional);
  });
}
}  // namespace

CheckpointSeq MemoryRecords::next_seq(const Row& row) {
  const std::uint64_t newest = row.checkpoints.empty() ? 0 : row.checkpoints.back().seq.value;
  return {std::max(newest, row.row.machine.head.value) + 1};
}

Result<MemoryRecords::Commit> MemoryRecords::commit_checkpoint(Checkpoint c) {
  TRY_ASSIGN(Row * row, find(c.job));
  job::State& machine = row->row.machine;
  // As the real one: neither a repeat nor an older one of the same attempt that arrives last moves the head.
  for (const Checkpoint& known : row->checkpoints)
    if (known.epoch == c.epoch &&
        (known.host_number == c.host_number || (known.host_number > c.host_number && !known.stray)))
      return Commit{known, false, {machine, {}, {}, {}}};
  c.seq = next_seq(*row);
  const bool waits = waits_behind(machine, c);
  const bool became_head = !waits && c.epoch == machine.epoch && c.seq > machine.head;
  c.stray = !became_head && !waits;
  TRY(before_commit());
  Commit out{c, became_head, {machine, {}, {}, {}}};
  if (became_head) {
    out.step = job::step(machine, {c.created_at, job::CheckpointCommitted{c.epoch, c.seq, "", c.host_number, c.as_left}});
    save(*row, out.step, c.created_at);
  }
  row->checkpoints.push_back(std::move(c));
  TRY(after_commit());
  return out;
}

Result<std::vector<Checkpoint>> MemoryRecords::checkpoints(const JobId& id) {
  TRY_ASSIGN(const Row* row, find(id));
  return row->checkpoints;
}

Result<Checkpoint> MemoryRecords::checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) {
  TRY_ASSIGN(const Row* row, find(id));
  const CheckpointSeq wanted = seq.value_or(row->row.machine.head);
  for (const Checkpoint& c : row->checkpoints)
    if (c.seq == wanted) return c;
  return make_error(Code::not_found, "no such checkpoint");
}

Result<void> MemoryRecords::remove_checkpoint(const JobId& id, CheckpointSeq seq) {
  TRY_ASSIGN(Row * row, find(id));
  const job::State& state = row->row.machine;
  const job::Attempt* attempt = state.attempt();
  const bool in_use = (attempt != nullptr && attempt->resumed_from == seq) || state.restore == seq;
  if ((state.head == seq || in_use) && !job::is_final(state.visible()))
    return make_error(Code::usage, "it is what the unfinished job would restart from");
  TRY(before_commit());
  std::erase_if(row->checkpoints, [&](const Checkpoint& c) { return c.seq == seq; });
  return after_commit();
}

Result<void> MemoryRecords::save_results(const registry::Results& results) {
  TRY_ASSIGN(Row * row, find(results.job));
  TRY(before_commit());
  row->results = results;
  return after_commit();
}

Result<std::optional<registry::Results>> MemoryRecords::results(const JobId& id) {
  TRY_ASSIGN(const Row* row, find(id));
  return row->results;
}

Result<std::vector<Checkpoint>> MemoryRecords::prunable(const JobId& id, const job::KeepPolicy& keep) {
  TRY_ASSIGN(const Row* row, find(id));
  std::vector<Checkpoint> own, left;
  for (const Checkpoint& c : row->checkpoints)
    if (!c.stray && !row->row.machine.is_suspect(c.seq)) (c.as_left ? left : own).push_back(c);
  std::vector<job::KeepCandidate> saved;
  for (const Checkpoint& c : own) saved.push_back({c.created_at, &c.metrics});
  const std::vector<bool> kept = job::kept(keep, saved);
  const job::State& state = row->row.machine;
  const job::Attempt* attempt = state.attempt();
  const std::optional<CheckpointSeq> proven = job::newest_proven(state);
  std::vector<Checkpoint> out;
  for (std::size_t i = 0; i + k_newest_kept < own.size(); ++i) {
    const bool in_use = own[i].seq == state.head || proven == own[i].seq || state.restore == own[i].seq ||
                        (attempt != nullptr && attempt->resumed_from == own[i].seq);
    if (!kept[i] && !own[i].pinned && !in_use) out.push_back(own[i]);
  }
  for (std::size_t i = 0; i + 1 < left.size(); ++i)
    if (!left[i].pinned && left[i].seq != state.head && !(attempt != nullptr && attempt->resumed_from == left[i].seq))
      out.push_back(left[i]);
  return out;
}

std::unique_ptr<Backend> make_memory_records(Random& random) { return std::make_unique<MemoryRecords>(random); }

}  // namespace gridctl::sim
