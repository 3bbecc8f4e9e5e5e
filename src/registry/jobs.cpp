// SPDX-License-Identifier: Apache-2.0
// Jobs, attempts and events.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/formatted.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "registry/impl.hpp"
#include "registry/shared_price.hpp"

namespace gridctl::registry {

namespace {

std::optional<std::int64_t> ms(const std::optional<WallTime>& time) {
  return time ? std::optional{time->ms} : std::nullopt;
}

// "1x A100, 4 cpus, 16 GiB"
std::string describe(const job::Resources& r) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!r.gpus.empty()) {
    const job::GpuRequest& gpu = r.gpus.front();
    add(std::to_string(gpu.count_min) + "x " + (gpu.names.empty() ? "GPU" : join(gpu.names, "|")));
  }
  add(formatted("%g", r.cpus > 0 ? r.cpus : 1.0) + (r.cpus == 1 || r.cpus <= 0 ? " cpu" : " cpus"));
  if (r.memory_bytes > 0) add(format_size(r.memory_bytes));
  return text;
}

constexpr std::string_view k_row_columns =  // those of the index jobs_listed
    "SELECT id, name, state, reason, provider, exit_code, submitted_ms, ended_ms, recoveries, resources FROM jobs ";

JobRow read_row(const db::Statement& row) {
  JobRow out;
  out.id = {row.text(0)};
  out.name = row.text(1);
  const Result<job::JobState> state = job::parse_state_name(row.text(2));
  out.state = state ? *state : job::JobState::pending;
  out.reason = state ? row.text(3) : "unreadable";  // a word of a newer gridctl; the other rows are as good as ever
  out.provider = {row.text(4)};
  if (!row.is_null(5)) out.exit_code = static_cast<int>(row.integer(5));
  out.submitted_at = {row.integer(6)};
  if (!row.is_null(7)) out.ended_at = WallTime{row.integer(7)};
  out.recoveries = static_cast<int>(row.integer(8));
  out.resources = row.text(9);
  return out;
}

// Returns what the attempts of a job cost by their receipts, in USD, by epoch; without one that is still to come.
Result<std::map<std::uint64_t, double>> billed_by(db::Database& db, const JobId& id) {
  std::map<std::uint64_t, double> billed;
  db::Statement none = db.prepare("SELECT a.epoch FROM attempts a WHERE a.job = ? AND " GRIDCTL_NO_RECEIPT);
  TRY(none.bind(id.value).each([&](const db::Statement& row) { billed[row.count(0)] = 0; }));
  db::Statement query = db.prepare("SELECT epoch, SUM(counted_micro) / 1e6 FROM receipts WHERE job = ? GROUP BY epoch");
  TRY(query.bind(id.value).each([&](const db::Statement& row) { billed[row.count(0)] = row.real(1); }));
  return billed;
}

// Wall time of each attempt, at the price that it began with, or what its receipt says.
Spent spent_by(const std::vector<AttemptRecord>& attempts, const std::map<std::uint64_t, double>& billed, WallTime now) {
  Spent spent;
  for (const AttemptRecord& a : attempts) {
    const auto receipt = billed.find(a.epoch.value);
    if (receipt != billed.end()) spent.usd += receipt->second;
    if (!a.started_at) continue;
    const std::int64_t end = a.ended_at ? a.ended_at->ms : now.ms;
    const std::chrono::milliseconds ran{std::max<std::int64_t>(end - a.started_at->ms, 0)};
    spent.ran += ran;
    if (receipt == billed.end()) spent.usd += a.price_per_hour * static_cast<double>(ran.count()) / 3.6e6;
  }
  return spent;
}

}  // namespace

Result<job::State> Registry::Impl::load_machine(const JobId& id) {
  db::Statement query = db.prepare("SELECT machine FROM jobs WHERE id = ?");
  TRY_ASSIGN(const bool row, query.bind(id.value).next());
  if (!row) return make_error(Code::not_found, "no job '" + id.value.substr(0, 64) + "'", "gridctl job ls");
  TRY_ASSIGN(job::State state, job::parse_state(query.text(0)));
  db::Statement saved = db.prepare(
      "SELECT c.seq, c.attempt, coalesce(a.provider, ''), c.provisional FROM checkpoints c "
      "LEFT JOIN attempts a ON a.job = c.job AND a.number = c.attempt "
      "WHERE c.job = ? AND c.stray = 0 AND c.verified = 1 AND c.provisional < 3 ORDER BY c.seq");
  TRY(saved.bind(id.value).each([&](const db::Statement& one) {
    state.saved.list.push_back({{one.count(0)}, {one.count(1)}, {one.text(2)}, one.integer(3) != 0, one.integer(3) > 1});
  }));
  return state;
}

Result<void> Registry::Impl::save_record(const JobId& id, WallTime at, AttemptNumber attempt,
                                         const job::Record& record) {
  db::Statement insert =
      db.prepare("INSERT INTO events(job, at_ms, kind, text, epoch, attempt, host) VALUES(?,?,?,?,?,?,?)");
  return insert.bind(id.value, at.ms, record.kind, record.text, record.epoch.value, attempt.value, record.host.value)
      .run();
}

Result<void> Registry::Impl::save_attempt(const JobId& id, const job::AttemptRow& row) {
  const job::Attempt& a = row.attempt;
  double price = 0;
  for (const job::Member& member : a.members) price += member.price_per_hour;
  db::Statement insert = db.prepare(
      "INSERT INTO attempts(job, number, epoch, provider, state, reason, why, price, started_ms, ended_ms, "
      "resumed_from, "
      "exit_code) VALUES(?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(job, number) DO UPDATE SET state = excluded.state, "
      "reason = excluded.reason, started_ms = excluded.started_ms, ended_ms = excluded.ended_ms, "
      "exit_code = excluded.exit_code");
  TRY(insert
          .bind(id.value, a.number.value, a.epoch.value, a.lead().host.value, row.state, row.reason, a.placement_reason,
                price, ms(a.started_at), ms(row.ended_at), a.resumed_from.value, row.exit_code)
          .run());
  for (const job::Member& member : a.members) TRY(save_member(id, a.number, member));
  return {};
}

Result<void> Registry::Impl::save_member(const JobId& id, AttemptNumber number, const job::Member& member) {
  db::Statement insert = db.prepare(
      "INSERT INTO members(job, number, rank, provider, price, state, exit_code) VALUES(?,?,?,?,?,?,?) "
      "ON CONFLICT(job, number, rank) DO UPDATE SET state = excluded.state, exit_code = excluded.exit_code");
  std::optional<int> exit_code;
  if (member.end && member.end->kind == job::EndKind::exited) exit_code = member.end->exit_code;
  return insert
      .bind(id.value, number.value, member.rank, member.host.value, member.price_per_hour,
            member.end ? job::end_kind_name(member.end->kind) : job::part_name(member.part), exit_code)
      .run();
}

Result<void> Registry::Impl::load_members(const JobId& id, std::vector<AttemptRecord>& attempts) {
  db::Statement query = db.prepare(
      "SELECT number, rank, provider, price, state, exit_code FROM members WHERE job = ? ORDER BY number, rank");
  return query.bind(id.value).each([&](const db::Statement& row) {
    MemberRecord member{static_cast<int>(row.integer(1)), {row.text(2)}, row.text(4), row.real(3), {}};
    if (!row.is_null(5)) member.exit_code = static_cast<int>(row.integer(5));
    for (AttemptRecord& attempt : attempts)
      if (attempt.number.value == row.count(0)) attempt.members.push_back(member);
  });
}

Result<void> Registry::Impl::save_step(const JobId& id, const job::Step& step, WallTime at) {
  const job::State& s = step.state;
  const auto* done = std::get_if<job::Done>(&s.phase);
  const job::Attempt* attempt = s.attempt();
  {
    db::Statement update = db.prepare(
        "UPDATE jobs SET machine = ?, state = ?, reason = ?, provider = ?, epoch = ?, head = ?, unfinished = ?, "
        "exit_code = ?, recoveries = ?, ended_ms = ? WHERE id = ?");
    TRY(update
            .bind(job::to_json(s), job::state_name(s.visible()), s.reason,
                  attempt != nullptr ? attempt->lead().host.value : std::string{}, s.epoch.value, s.head.value,
                  s.needs_controller(), done != nullptr ? done->exit_code : std::nullopt, s.recoveries,
                  done != nullptr ? std::optional{done->at.ms} : std::nullopt, id.value)
            .run());
  }
  for (const job::Record& record : step.records) TRY(save_record(id, at, s.attempts, record));
  for (const job::AttemptRow& row : step.attempts) TRY(save_attempt(id, row));
  return {};
}

Result<void> Registry::Impl::save_inputs(const JobId& id, const std::vector<Input>& inputs) {
  for (const Input& input : inputs) {
    db::Statement insert = db.prepare("INSERT INTO inputs(job, role, target, root, bytes) VALUES(?,?,?,?,?)");
    TRY(insert.bind(id.value, input.role, input.target, to_hex(input.root), input.bytes).run());
  }
  return {};
}

Result<job::Step> Registry::submit(const JobId& id, const job::Spec& spec, WallTime at,
                                   const std::vector<Input>& inputs) {
  job::Step step = job::submitted(id, spec, at);
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  {
    db::Statement insert = impl_->db.prepare(
        "INSERT INTO jobs(id, name, spec, machine, state, reason, provider, resources, epoch, head, unfinished, "
        "recoveries, submitted_ms, owner) VALUES(?,?,?,'','','','',?,0,0,1,0,?,?)");
    TRY(insert.bind(id.value, spec.name, job::to_json(spec), describe(spec.resources), at.ms, spec.owner).run());
  }
  TRY(impl_->save_inputs(id, inputs));
  TRY(impl_->save_step(id, step, at));
  TRY(transaction.commit());
  return step;
}

Result<std::vector<Input>> Registry::inputs(const JobId& id) {
  db::Statement query = impl_->db.prepare("SELECT role, target, root, bytes FROM inputs WHERE job = ?");
  std::vector<Input> list;
  TRY(query.bind(id.value).each([&](const db::Statement& row) -> Result<void> {
    TRY_ASSIGN(const Digest root, parse_digest(row.text(2)));
    list.push_back({row.text(0), row.text(1), root, row.count(3)});
    return {};
  }));
  return list;
}

Result<job::Step> Registry::apply(const JobId& id, const job::TimedEvent& event) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  job::Step step = job::step(state, event);
  if (step.state == state && step.records.empty() && step.attempts.empty()) return step;
  TRY(impl_->save_step(id, step, event.at));
  if (std::holds_alternative<job::PriceChanged>(event.what)) {
    db::Statement insert = impl_->db.prepare(
        "INSERT INTO price_changes(job, number, at_ms, more) VALUES(?,?,?,?) "
        "ON CONFLICT(job, number, at_ms) DO UPDATE SET more = more + excluded.more");
    TRY(insert
            .bind(id.value, step.state.attempts.value, event.at.ms,
                  step.state.price_per_hour() - state.price_per_hour())
            .run());
  }
  TRY(transaction.commit());
  return step;
}

Result<job::Step> Registry::replace(const JobId& id, const job::Spec& spec, const std::vector<Input>& inputs,
                                    const job::TimedEvent& event) {
  TRY_ASSIGN(db::Transaction transaction, db::Transaction::begin(impl_->db));
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  job::Step step = job::step(state, event);
  TRY(impl_->db.prepare("UPDATE jobs SET spec = ?, resources = ? WHERE id = ?")
          .bind(job::to_json(spec), describe(spec.resources), id.value)
          .run());
  TRY(impl_->db.prepare("DELETE FROM inputs WHERE job = ?").bind(id.value).run());
  TRY(impl_->save_inputs(id, inputs));
  TRY(impl_->save_step(id, step, event.at));
  TRY(transaction.commit());
  return step;
}

Result<void> Registry::note(const JobId& id, WallTime at, const job::Record& record) {
  TRY_ASSIGN(const job::State state, impl_->load_machine(id));
  return impl_->save_record(id, at, state.attempts, record);
}

Result<void> Registry::update_spec(const JobId& id, const job::Spec& spec) {
  return impl_->db.prepare("UPDATE jobs SET spec = ? WHERE id = ?").bind(job::to_json(spec), id.value).run();
}

namespace {
// Jobs that somebody submitted: drills and twins are made by gridctl.
constexpr std::string_view k_last =
    "SELECT id FROM jobs WHERE COALESCE(json_extract(spec, '$.replica_of'), '') = '' AND "
    "COALESCE(json_extract(spec, '$.envs.GRIDCTL_DRILL'), '') = '' ORDER BY n DESC LIMIT 1";
}  // namespace

Result<JobId> Registry::resolve(const std::string& text) {
  const auto first = [&](std::string_view sql, const std::string& value) -> Result<std::optional<JobId>> {
    db::Statement query = impl_->db.prepare(sql);
    if (!value.empty()) query.bind(value);
    TRY_ASSIGN(const bool row, query.next());
    if (!row) return std::optional<JobId>{};
    return std::optional{JobId{query.text(0)}};
  };
  if (text == "@last") {
    TRY_ASSIGN(const auto last, first(k_last, ""));
    if (last) return *last;
    return make_error(Code::not_found, "there is no job yet", "gridctl job submit FILE.yaml");
  }
  TRY_ASSIGN(const auto exact, first("SELECT id FROM jobs WHERE id = ?", text));
  if (exact) return *exact;
  TRY_ASSIGN(const auto named, first("SELECT id FROM jobs WHERE name = ? ORDER BY n DESC LIMIT 1", text));
  if (named) return *named;
  const bool id_like =
      !text.empty() && text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos;
  if (id_like) {
    // A job's id begins those of its twins, and comes before them.
    db::Statement query =
        impl_->db.prepare("SELECT id FROM jobs WHERE id >= ? AND id < ? ORDER BY length(id), id LIMIT 2");
    TRY_ASSIGN(const bool row, query.bind(text, text + "~").next());
    if (row) {
      const JobId id{query.text(0)};
      TRY_ASSIGN(const bool another, query.next());
      if (!another || query.text(0).starts_with(id.value)) return id;
      return make_error(Code::not_found, "'" + text + "' is the beginning of several jobs' ids", "gridctl job ls");
    }
  }
  TRY_ASSIGN(const std::vector<std::string> names,
             impl_->db.prepare("SELECT DISTINCT name FROM jobs").all([](const auto& row) { return row.text(0); }));
  const std::string near = nearest(text, names);
  return make_error(Code::not_found,
                    "no job '" + text.substr(0, 64) + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
                    "gridctl job ls");
}

Result<Job> Registry::job(const JobId& id) {
  Job out;
  {
    db::Statement query = impl_->db.prepare(std::string(k_row_columns) + "WHERE id = ?");
    TRY_ASSIGN(const bool row, query.bind(id.value).next());
    if (!row) return make_error(Code::not_found, "no job '" + id.value.substr(0, 64) + "'", "gridctl job ls");
    static_cast<JobRow&>(out) = read_row(query);
  }
  {
    db::Statement query = impl_->db.prepare("SELECT spec FROM jobs WHERE id = ?");
    TRY_ASSIGN(const bool row, query.bind(id.value).next());
    if (!row) return make_error(Code::not_found, "no job '" + id.value.substr(0, 64) + "'");
    TRY_ASSIGN(out.spec, job::parse_spec(query.text(0)));
  }
  TRY_ASSIGN(out.machine, impl_->load_machine(id));
  TRY_ASSIGN(const std::optional<Pause> pause, paused(id));
  if (pause && out.state == job::JobState::running) out.reason = k_paused_reason;
  TRY_ASSIGN(const Spent used, spent(id, out.ended_at.value_or(out.submitted_at)));
  out.cost = used.usd;
  return out;
}

namespace {
constexpr std::size_t k_id_size = 13;  // characters of the id of a job that somebody submitted
}

JobId twin_id(const JobId& leader, int number) { return {leader.value + "r" + std::to_string(number)}; }

JobId leader_of(const JobId& twin) { return {twin.value.substr(0, twin.value.rfind('r'))}; }

std::uint32_t twin_number(const JobId& twin) {
  return parse_number<std::uint32_t>(std::string_view(twin.value).substr(twin.value.rfind('r') + 1)).value_or(0);
}

bool is_bag_worker(const JobRow& row) {
  const std::uint32_t number = row.id.value.size() > k_id_size ? twin_number(row.id) : 0;
  return number > 1 && row.name.ends_with("-w" + std::to_string(number));
}

Result<Spent> Registry::Impl::spent_alone(const std::vector<AttemptRecord>& list, const JobId& id, WallTime now) {
  TRY_ASSIGN(const auto billed, billed_by(db, id));
  Spent spent = spent_by(list, billed, now);
  db::Statement query = db.prepare(std::string(k_price_changes) + " AND a.job = ?4");
  TRY_ASSIGN(const bool row, query.bind(now.ms, std::int64_t{0}, std::int64_t{0}, id.value).next());
  if (row && !query.is_null(0)) spent.usd += query.real(0);
  db::Statement pauses = db.prepare("SELECT SUM(" + std::string(k_unbilled_price) + " * " + std::string(k_paused_ms) + ") / 3.6e6, SUM(" +
                                    std::string(k_paused_ms) + ")" + std::string(k_paused_from) + " AND a.job = ?4");
  TRY_ASSIGN(const bool paused, pauses.bind(now.ms, std::int64_t{0}, std::int64_t{0}, id.value).next());
  if (paused && !pauses.is_null(1)) {
    spent.usd -= pauses.real(0);
    spent.ran -= std::chrono::milliseconds{pauses.integer(1)};
  }
  return spent;
}

Result<Spent> Registry::spent(const JobId& id, WallTime now) {
  TRY_ASSIGN(const std::vector<AttemptRecord> own, attempts(id));
  TRY_ASSIGN(Spent spent, impl_->spent_alone(own, id, now));
  TRY_ASSIGN(const std::vector<JobRow> others, twins(id));
  for (const JobRow& twin : others) {
    TRY_ASSIGN(const std::vector<AttemptRecord> list, attempts(twin.id));
    TRY_ASSIGN(const Spent its, impl_->spent_alone(list, twin.id, now));
    spent.usd += its.usd;
  }
  if (others.empty()) return spent;
  TRY_ASSIGN(const SharedPrice shared, shared_by_workers(impl_->db, id, {}, now));
  spent.usd -= shared.usd;
  return spent;
}

Result<std::vector<JobRow>> Registry::twins(const JobId& id) {
  db::Statement query =
      impl_->db.prepare(std::string(k_row_columns) + "WHERE id > ?1 || 'r' AND id < ?1 || 's' ORDER BY id");
  return query.bind(id.value).all(read_row);
}

Result<std::vector<JobRow>> Registry::jobs(const JobFilter& filter) {
  std::string where;
  for (const job::JobState state : filter.states)
    where += std::string(where.empty() ? "WHERE state IN (" : ",") + "'" + std::string(job::state_name(state)) + "'";
  if (!where.empty()) where += ") ";
  if (filter.active_only) where += std::string(where.empty() ? "WHERE " : "AND ") + "ended_ms IS NULL ";
  std::string sql = std::string(k_row_columns) + "INDEXED BY jobs_listed " + where + "ORDER BY n DESC";
  if (filter.limit > 0) sql += " LIMIT " + std::to_string(filter.limit);
  return impl_->db.prepare(sql).all(read_row);
}

Result<std::vector<JobId>> Registry::unfinished() {
  return impl_->db.prepare("SELECT id FROM jobs WHERE unfinished = 1 ORDER BY n").all([](const db::Statement& row) {
    return JobId{row.text(0)};
  });
}

Result<std::vector<job::State>> Registry::running() {
  db::Statement query = impl_->db.prepare("SELECT machine FROM jobs WHERE unfinished = 1 ORDER BY n");
  std::vector<job::State> states;
  TRY(query.each([&](const db::Statement& row) {
    // One that cannot be read, of a newer gridctl for instance, must stop no other job: hosts know what it holds there.
    Result<job::State> state = job::parse_state(row.text(0));
    if (state && state->attempt() != nullptr) states.push_back(*std::move(state));
  }));
  return states;
}

Result<Registry::Changes> Registry::changes(std::int64_t after) {
  Changes out{after, {}};
  {
    db::Statement query = impl_->db.prepare("SELECT coalesce(max(revision), 0) FROM jobs");
    TRY_ASSIGN(const bool row, query.next());
    if (row && query.integer(0) < after) after = 0;  // the last job was forgotten: revisions begin anew
  }
  if (after > 0) {
    db::Statement query = impl_->db.prepare("SELECT revision, id FROM jobs WHERE revision > ? ORDER BY revision");
    TRY(query.bind(after).each([&](const db::Statement& row) {
      out.revision = row.integer(0);
      out.jobs.push_back({row.text(1)});
    }));
    return out;
  }
  {
    db::Statement query = impl_->db.prepare("SELECT coalesce(max(revision), 0) FROM jobs");
    TRY_ASSIGN(const bool row, query.next());
    if (row) out.revision = query.integer(0);
  }
  TRY_ASSIGN(out.jobs, unfinished());  // what changes meanwhile is told the next time, too
  return out;
}

Result<std::vector<AttemptRecord>> Registry::attempts(const JobId& id) {
  db::Statement query = impl_->db.prepare(
      "SELECT number, epoch, provider, state, reason, why, price, started_ms, ended_ms, resumed_from, exit_code "
      "FROM attempts WHERE job = ? ORDER BY number");
  TRY_ASSIGN(std::vector<AttemptRecord> list, query.bind(id.value).all([](const db::Statement& row) {
    AttemptRecord a;
    a.number = {row.count(0)};
    a.epoch = {row.count(1)};
    a.provider = {row.text(2)};
    a.state = row.text(3);
    a.reason = row.text(4);
    a.placement_reason = row.text(5);
    a.price_per_hour = row.real(6);
    if (!row.is_null(7)) a.started_at = WallTime{row.integer(7)};
    if (!row.is_null(8)) a.ended_at = WallTime{row.integer(8)};
    a.resumed_from = {row.count(9)};
    if (!row.is_null(10)) a.exit_code = static_cast<int>(row.integer(10));
    return a;
  }));
  TRY(impl_->load_members(id, list));
  return list;
}

Result<std::vector<EventRecord>> Registry::events(const JobId& id, std::int64_t after, std::size_t limit) {
  db::Statement query = impl_->db.prepare(
      "SELECT id, at_ms, kind, text, epoch, attempt, host FROM events WHERE job = ? AND id > ? ORDER BY id LIMIT ?");
  query.bind(id.value, after, limit == 0 ? std::int64_t{-1} : static_cast<std::int64_t>(limit));
  return query.all([&](const db::Statement& row) {
    EventRecord e;
    e.id = row.integer(0);
    e.job = id;
    e.at = {row.integer(1)};
    e.kind = row.text(2);
    e.text = row.text(3);
    e.epoch = {row.count(4)};
    e.attempt = {row.count(5)};
    e.host = {row.text(6)};
    return e;
  });
}

Result<std::string> Registry::no_checkpoint(const JobId& id) {
  db::Statement query = impl_->db.prepare(
      "SELECT kind, text FROM events WHERE job = ? AND kind IN ('no_checkpoint', 'checkpoints_again', 'unproven', "
      "'proven', 'attempt_started', "
      "'attempt_ended') ORDER BY id DESC LIMIT 1");
  TRY_ASSIGN(const bool row, query.bind(id.value).next());
  const bool has_none = row && (query.text(0) == "no_checkpoint" || query.text(0) == "unproven");
  return has_none ? query.text(1) : std::string();
}

// A reason may contain what a host said, and its line ends must not begin lines of the explanation.
Result<void> Registry::save_explanation(const JobId& id, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + join(split_lines(line), " | ");
  return impl_->db.prepare("UPDATE jobs SET explanation = ? WHERE id = ? AND explanation IS NOT ?").bind(text, id.value, text).run();
}

Result<std::vector<std::string>> Registry::explanation(const JobId& id) {
  db::Statement query = impl_->db.prepare("SELECT explanation FROM jobs WHERE id = ?");
  TRY_ASSIGN(const bool row, query.bind(id.value).next());
  if (!row) return make_error(Code::not_found, "no job '" + id.value.substr(0, 64) + "'", "gridctl job ls");
  return split_lines(query.text(0));
}

}  // namespace gridctl::registry
