// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "job/going_back.hpp"
#include "registry/impl.hpp"

namespace gridctl::registry {

namespace {

constexpr std::size_t k_always_kept = 2;  // newest; should the last one turn out to be no good

// The column `provisional` holds one of these; each also means what those below mean.
constexpr int k_provisional = 1, k_as_left = 2, k_torn = 3;

constexpr std::string_view k_columns =
    "SELECT seq, epoch, attempt, root, created_ms, bytes, stored_bytes, files, host_number, verified, pinned, stray, "
    "how, stall_ms, upload_ms, metrics, provisional "
    "FROM checkpoints WHERE job = ? ";

std::optional<std::string> to_text(const Metrics& metrics) {
  if (metrics.empty()) return std::nullopt;
  return nlohmann::json(metrics).dump();
}

Metrics metrics_of(const std::string& text) {
  Metrics metrics;
  const auto stored = nlohmann::json::parse(text, nullptr, false);
  if (!stored.is_object()) return metrics;
  for (const auto& [name, value] : stored.items())
    if (value.is_number()) metrics.emplace(name, value.get<double>());
  return metrics;
}

Result<Checkpoint> read_checkpoint(const JobId& id, const db::Statement& row) {
  Checkpoint c;
  c.job = id;
  c.seq = {row.count(0)};
  c.epoch = {row.count(1)};
  c.attempt = {row.count(2)};
  Result<Digest> root = parse_digest(row.text(3));
  if (!root) return make_error(Code::state_unreadable, "a stored checkpoint has no valid root");
  c.root = *root;
  c.created_at = {row.integer(4)};
  c.bytes = row.count(5);
  c.stored_bytes = row.count(6);
  c.files = row.count(7);
  c.host_number = row.count(8);
  c.verified = row.integer(9) != 0;
  c.pinned = row.integer(10) != 0;
  c.stray = row.integer(11) != 0;
  c.how = row.text(12);
  if (!row.is_null(13)) c.stall = std::chrono::milliseconds{row.integer(13)};
  if (!row.is_null(14)) c.upload = std::chrono::milliseconds{row.integer(14)};
  if (!row.is_null(15)) c.metrics = metrics_of(row.text(15));
  const auto sureness = static_cast<int>(row.integer(16));
  c.provisional = sureness >= k_provisional;
  c.as_left = sureness >= k_as_left;
  c.torn = sureness >= k_torn;
  return c;
}

void add_copies(Checkpoint& checkpoint, const std::vector<Copy>& copies) {
  for (const Copy& copy : copies)
    if (copy.seq == checkpoint.seq) checkpoint.copies.push_back(copy.remote);
}

Error no_such_checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) {
  const std::string which =
      seq ? "no checkpoint " + checkpoint_name(id, *seq) : "job " + id.value + " has no checkpoint";
  return make_error(Code::not_found, which, "gridctl checkpoint ls " + id.value);
}

int sureness_of(const Checkpoint& c) {
  return c.torn ? k_torn : c.as_left ? k_as_left : c.provisional ? k_provisional : 0;
}

std::string describe(const Checkpoint& c) {
  const std::string size = format_size(c.bytes) + ", " + std::to_string(c.files) + (c.files == 1 ? " file" : " files");
  if (c.as_left) return size + ", as the attempt left it" + (c.torn ? ", a file of it is torn" : "");
  return size + ", recognised as complete (" + c.how + ")" + (c.provisional ? ", provisional" : "");
}

// Moves the head in the statement that tests the fence: a stale epoch changes no row.
Result<bool> move_head(db::Database& db, const Checkpoint& c) {
  db::Statement update = db.prepare("UPDATE jobs SET head = ? WHERE id = ? AND epoch = ? AND head < ?");
  TRY(update.bind(c.seq.value, c.job.value, c.epoch.value, c.seq.value).run());
  return db.changes() == 1;
}

// A checkpoint of which nobody is sure does not take the place of one of which somebody was, while that is kept.
bool waits_behind_head(const job::State& state, const Checkpoint& c) {
  if (!c.provisional || c.epoch != state.epoch) return false;
  if (c.torn) return true;
  const CheckpointSeq best = state.is_suspect(state.head) ? state.start() : state.head;
  return std::ranges::any_of(state.saved.list, [&](const job::Saved& one) {
    return one.seq == best && (c.as_left ? !one.as_left : !one.provisional);
  });
}

void mark_suspects(std::vector<Checkpoint>& list, const job::State& state) {
  for (Checkpoint& c : list) c.suspect = state.is_suspect(c.seq);
}

Result<CheckpointSeq> next_seq(db::Database& db, const JobId& id, CheckpointSeq head) {
  db::Statement query = db.prepare("SELECT coalesce(max(seq), 0) FROM checkpoints WHERE job = ?");
  TRY_ASSIGN(const bool row, query.bind(id.value).next());
  const std::uint64_t newest = row ? static_cast<std::uint64_t>(query.integer(0)) : 0;
  return CheckpointSeq{std::max(newest, head.value) + 1};
}

std::optional<std::int64_t> in_ms(const std::optional<Duration>& duration) {
  if (!duration) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(*duration).count();
}

Result<void> insert(db::Database& db, const Checkpoint& c) {
  db::Statement statement = db.prepare(
      "INSERT INTO checkpoints(job, seq, epoch, attempt, root, created_ms, bytes, stored_bytes, files, host_number, "
      "verified, pinned, stray, how, stall_ms, upload_ms, metrics, provisional) "
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
  return statement
      .bind(c.job.value, c.seq.value, c.epoch.value, c.attempt.value, to_hex(c.root), c.created_at.ms, c.bytes,
            c.stored_bytes, c.files, c.host_number, c.verified, c.pinned, c.stray, c.how, in_ms(c.stall),
            in_ms(c.upload), to_text(c.metrics), sureness_of(c))
      .run();
}

}  // namespace

Result<Registry::Commit> Registry::commit_checkpoint(Checkpoint c) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY_ASSIGN(const job::State state, impl_->load_machine(c.job));
  if (c.host_number > 0) {
    // Two fetches may be under way at once, and the older checkpoint may arrive last: the head never goes back.
    db::Statement query = impl_->db.prepare(std::string(k_columns) +
                                            "AND epoch = ? AND (host_number = ?3 OR (host_number > ?3 AND stray = 0)) "
                                            "ORDER BY host_number LIMIT 1");
    TRY_ASSIGN(const bool known, query.bind(c.job.value, c.epoch.value, c.host_number).next());
    if (known) {
      TRY_ASSIGN(Checkpoint former, read_checkpoint(c.job, query));
      return Commit{std::move(former), false, {state, {}, {}, {}}};
    }
  }
  TRY_ASSIGN(c.seq, next_seq(impl_->db, c.job, state.head));
  const bool waits = waits_behind_head(state, c);
  bool became_head = false;
  if (!waits) {
    TRY_ASSIGN(became_head, move_head(impl_->db, c));
  }
  c.stray = !became_head && !waits;
  TRY(insert(impl_->db, c));
  Commit out{c, became_head, {state, {}, {}, {}}};
  if (became_head) {
    out.step = job::step(state, {c.created_at, job::CheckpointCommitted{c.epoch, c.seq, describe(c), c.host_number, c.as_left}});
    TRY(impl_->save_step(c.job, out.step, c.created_at));
  } else if (waits) {
    TRY(impl_->save_record(c.job, c.created_at, c.attempt,
                           {c.as_left ? "kept_as_left" : "provisional_checkpoint",
                            "checkpoint " + std::to_string(c.seq.value) +
                                (c.as_left ? " is kept: " : " is kept beside the one before, which is surely whole: ") +
                                describe(c),
                            c.epoch,
                            {}}));
  } else {
    TRY(impl_->save_record(
        c.job, c.created_at, c.attempt,
        {"stray_checkpoint",
         "checkpoint " + std::to_string(c.seq.value) + " of a stale attempt is kept as a stray: " + describe(c),
         c.epoch,
         {}}));
  }
  TRY(transaction.commit());
  return out;
}

Result<job::Step> Registry::take_result(const JobId& id, const JobId& twin, const job::TimedEvent& event) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY_ASSIGN(const job::State before, impl_->load_machine(id));
  job::Step step = job::step(before, event);
  if (step.state == before) return step;
  TRY(impl_->save_step(id, step, event.at));
  TRY_ASSIGN(const job::State theirs, impl_->load_machine(twin));
  if (theirs.head.value > 0) {
    TRY_ASSIGN(Checkpoint c, checkpoint(twin, std::nullopt));
    c.job = id;
    c.epoch = step.state.epoch;
    c.attempt = step.state.attempts;
    c.host_number = 0;
    c.pinned = false;
    TRY_ASSIGN(c.seq, next_seq(impl_->db, id, step.state.head));
    TRY(insert(impl_->db, c));
    const job::Step headed = job::step(
        step.state,
        {event.at, job::CheckpointCommitted{c.epoch, c.seq, describe(c) + ", of twin " + twin.value, 0}});
    TRY(impl_->save_step(id, headed, event.at));
    step.state = headed.state;
  }
  TRY(transaction.commit());
  return step;
}

Result<std::vector<Checkpoint>> Registry::checkpoints(const JobId& id) {
  std::vector<Checkpoint> list;
  TRY(impl_->db.prepare(std::string(k_columns) + "ORDER BY seq")
          .bind(id.value)
          .each([&](const db::Statement& row) -> Result<void> {
            TRY_ASSIGN(list.emplace_back(), read_checkpoint(id, row));
            return {};
          }));
  if (list.empty()) return list;
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  mark_suspects(list, state);
  TRY_ASSIGN(const std::vector<Copy> copies, copies_of(id));
  for (Checkpoint& c : list) add_copies(c, copies);
  return list;
}

Result<Checkpoint> Registry::checkpoint(const JobId& id, std::optional<CheckpointSeq> seq) {
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  const CheckpointSeq wanted = seq.value_or(state.head);
  db::Statement query = impl_->db.prepare(std::string(k_columns) + "AND seq = ?");
  TRY_ASSIGN(const bool row, query.bind(id.value, wanted.value).next());
  if (!row) return no_such_checkpoint(id, seq);
  TRY_ASSIGN(Checkpoint found, read_checkpoint(id, query));
  TRY_ASSIGN(const std::vector<Copy> copies, copies_of(id));
  found.suspect = state.is_suspect(wanted);
  add_copies(found, copies);
  return found;
}

Result<void> Registry::set_pinned(const JobId& id, CheckpointSeq seq, bool pinned) {
  db::Statement update = impl_->db.prepare("UPDATE checkpoints SET pinned = ? WHERE job = ? AND seq = ?");
  TRY(update.bind(pinned, id.value, seq.value).run());
  if (impl_->db.changes() == 0) return no_such_checkpoint(id, seq);
  return {};
}

Result<void> Registry::set_verified(const JobId& id, CheckpointSeq seq, bool verified) {
  db::Statement update = impl_->db.prepare("UPDATE checkpoints SET verified = ? WHERE job = ? AND seq = ?");
  return update.bind(verified, id.value, seq.value).run();
}

Result<void> Registry::remove_checkpoint(const JobId& id, CheckpointSeq seq) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  TRY_ASSIGN(const Checkpoint c, checkpoint(id, seq));
  const job::Attempt* attempt = state.attempt();
  const bool in_use = (attempt != nullptr && attempt->resumed_from == seq) || state.restore == seq;
  if (c.pinned)
    return make_error(Code::usage, checkpoint_name(id, seq) + " is pinned",
                      "gridctl checkpoint pin --off " + checkpoint_name(id, seq));
  if ((state.head == seq || in_use) && !is_final(state.visible()))
    return make_error(Code::usage, checkpoint_name(id, seq) + " is what the unfinished job would restart from");
  TRY(impl_->db.prepare("DELETE FROM checkpoints WHERE job = ? AND seq = ?").bind(id.value, seq.value).run());
  return transaction.commit();
}

Result<std::vector<Checkpoint>> Registry::prunable(const JobId& id, const job::KeepPolicy& keep) {
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  TRY_ASSIGN(std::vector<Checkpoint> list, checkpoints(id));
  std::vector<Checkpoint> own;
  std::vector<Checkpoint> left;
  for (Checkpoint& c : list)
    if (!c.stray && !c.suspect) (c.as_left ? left : own).push_back(std::move(c));  // no place of what can be restored
  std::vector<job::KeepCandidate> saved;
  for (const Checkpoint& c : own) saved.push_back({c.created_at, &c.metrics});
  const std::vector<bool> kept = job::kept(keep, saved);
  const job::Attempt* attempt = state.attempt();
  const std::optional<CheckpointSeq> proven = job::newest_proven(state);
  std::vector<Checkpoint> out;
  for (std::size_t i = 0; i + k_always_kept < own.size(); ++i) {
    const bool in_use = own[i].seq == state.head || (attempt != nullptr && attempt->resumed_from == own[i].seq) ||
                        state.restore == own[i].seq || proven == own[i].seq;
    if (!kept[i] && !own[i].pinned && !in_use) out.push_back(own[i]);
  }
  for (std::size_t i = 0; i + 1 < left.size(); ++i)
    if (!left[i].pinned && left[i].seq != state.head && !(attempt != nullptr && attempt->resumed_from == left[i].seq))
      out.push_back(left[i]);
  return out;
}

Result<std::vector<Digest>> Registry::live_roots() {
  db::Statement query = impl_->db.prepare(
      "SELECT root FROM checkpoints UNION SELECT root FROM inputs UNION SELECT root FROM results WHERE root IS NOT "
      "NULL");
  std::vector<Digest> roots;
  TRY(query.each([&](const db::Statement& row) -> Result<void> {
    TRY_ASSIGN(roots.emplace_back(), parse_digest(row.text(0)));
    return {};
  }));
  return roots;
}

}  // namespace gridctl::registry
