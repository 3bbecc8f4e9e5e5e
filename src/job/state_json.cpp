// SPDX-License-Identifier: Apache-2.0
// Reads and writes the stored form of a job's state. A gridctl of any version reads what earlier ones stored.
#include <array>

#include "base/record.hpp"
#include "job/state.hpp"

namespace gridctl::job {

namespace {
// Indexed by Phase.
constexpr std::array<std::string_view, 6> k_phases{"waiting", "launching", "running", "stopping", "collecting", "done"};

// Part of members in states that were stored before members had one.
constexpr std::array<Part, 6> k_parts{Part::placed,  Part::placed, Part::running,
                                      Part::running, Part::ended,  Part::ended};

// Sets `phase` to a default one of the kind `name`.
template <std::size_t index = 0>
bool begin_phase(Phase& phase, std::string_view name) {
  if constexpr (index < std::variant_size_v<Phase>) {
    if (k_phases[index] != name) return begin_phase<index + 1>(phase, name);
    phase.emplace<index>();
    return true;
  }
  return false;
}
}  // namespace

template <class R>
void fields(R& r, Of<R, LastWords>& m) {
  r.word_or("advice", m.advice, advice_name, scan(advice_name, Advice::blame_host), Advice::none);
  r("cause", m.cause)("line", m.line);
}

template <class R>
void fields(R& r, Of<R, Setback>& m) {
  r("host", m.host).word_or("cause", m.cause, cause_name, scan(cause_name, Cause::words), Cause::unreached);
  r("in_row", m.in_row)("until", m.until)("detail", m.detail);
}

template <class R>
void fields(R& r, Of<R, End>& m) {
  r.word("kind", m.kind, end_kind_name, scan(end_kind_name, EndKind::not_started));
  r("exit_code", m.exit_code)("signal", m.signal)("detail", m.detail).added("rank", m.rank).added("last", m.last);
  r.null_or("at", m.at).unless("said", m.said, LastWords{});
}

template <class R>
void fields(R& r, Of<R, Member>& m) {
  r("rank", m.rank)("host", m.host);
  r.word_or("engine", m.engine, engine_name, parse_engine, EngineKind::process);
  r("gpus", m.gpu_uuids)("cpus", m.cpus)("memory_bytes", m.memory_bytes)("price", m.price_per_hour);
  r.word("part", m.part, part_name, scan(part_name, Part::collected)).null_or("end", m.end);
  r.added("doing", m.doing).added("address", m.address);
  r.added("keep_work", m.keep_work);
}

template <class R>
void fields(R& r, Of<R, Attempt>& m) {
  r("number", m.number)("epoch", m.epoch)("members", m.members).check(!m.members.empty(), "has no members");
  r("resumed_from", m.resumed_from)("why", m.placement_reason).null_or("started_at", m.started_at);
  r.null_or("last_saved_at", m.last_saved_at);
}

template <class R>
void fields(R& r, Of<R, Move>& m) {
  r("why", m.why)("since", m.since)("after", m.after)("saved", m.saved).added("host", m.host);
}

template <class R>
void fields(R& r, Of<R, Waiting>& m) {
  r("backoff_ns", m.backoff)("why", m.why)("detail", m.detail).added("for_room", m.for_room).maybe("until", m.until);
}

template <class R>
void fields(R& r, Of<R, Launching>& m) {
  r("attempt", m.attempt).added("placed_at", m.placed_at).added("doing", m.doing).added("doing_since", m.doing_since);
  r.added("connected", m.connected).added("port", m.port).added("token", m.token);
}

template <class R>
void fields(R& r, Of<R, Running>& m) {
  r("attempt", m.attempt).null_or("move", m.move);
}

template <class R>
void fields(R& r, Of<R, Stopping>& m) {
  r("attempt", m.attempt)("grace_ns", m.grace).added("moving", m.moving).null_or("cause", m.cause);
}

template <class R>
void fields(R& r, Of<R, Collecting>& m) {
  r("attempt", m.attempt)("end", m.end).added("moving", m.moving);
}

template <class R>
void fields(R& r, Of<R, Done>& m) {
  r.word_or("state", m.state, state_name, parse_state_name, JobState::failed).null_or("exit_code", m.exit_code);
  r("at", m.at);
}

template <class R>
void fields(R& r, Of<R, Phase>& phase) {
  std::string name(k_phases.at(phase.index()));
  r("phase", name);
  if constexpr (R::reads) r.check(begin_phase(phase, name), "is in an unknown phase");
  r.assume("part", part_name(k_parts.at(phase.index())));
  std::visit([&](auto& one) { fields(r, one); }, phase);
}

template <class R>
void fields(R& r, Of<R, PendingCleanup>& m) {
  r("host", m.host)("epoch", m.epoch)("attempt", m.attempt)("stale", m.stale).added("rank", m.rank);
  r.added("keep_work", m.keep_work);
}

template <class R>
void fields(R& r, Of<R, Avoided>& m) {
  r("host", m.host)("reason", m.reason);
}

template <class R>
void fields(R& r, Of<R, Failure>& m) {
  r("host", m.host)("exit_code", m.exit_code)("signal", m.signal).added("restored", m.restored).added("last", m.last);
}

template <class R>
void fields(R& r, Of<R, Expected>& m) {
  r("seconds", m.seconds)("usd", m.usd);
}

template <class R>
void fields(R& r, Of<R, Readiness>& m) {
  r("epoch", m.epoch)("proven", m.proven);
}

template <class R>
void fields(R& r, Of<R, State>& m) {
  r("id", m.id);
  r.object("policy", [&](R& policy) {
    policy("lost_after_ns", m.policy.lost_after)("max_failures", m.policy.max_failures);
    policy("restart_on", m.policy.restart_on)("fail_on", m.policy.fail_on)("lease_ns", m.policy.lease);
    policy.unless("endless", m.policy.endless, false);
  });
  r("at", m.phase)("reason", m.reason)("reason_text", m.reason_text)("epoch", m.epoch)("attempts", m.attempts);
  r("head", m.head).null_or("restore", m.restore)("failures", m.failures)("restarts_in_row", m.restarts_in_row);
  r("avoided", m.avoided)("loose_ends", m.pending_cleanups)("recoveries", m.recoveries)("lost_ns", m.lost);
  r("start_failures_in_row", m.start_failures_in_row)("recovering", m.recovering).null_or("cancel_ns", m.cancel);
  r.added("limit", m.limit).added("limit_text", m.limit_text).added("failures_max", m.failures_max);
  r.added("late", m.late).added("overtaken", m.overtaken).maybe("expected", m.expected);
  r.added("suspects", m.suspects).added("proven", m.proven).added("gone_back", m.gone_back);
  r.added("setbacks", m.setbacks).added("late_directory", m.late_directory);
  r.unless("ready", m.ready, Readiness{});
  std::optional<std::string> by;
  if (m.overtaken_by != Overtaken::twin) by = overtaken_name(m.overtaken_by);
  r.maybe("overtaken_by", by);
  if constexpr (R::reads)
    m.overtaken_by = by ? scan(overtaken_name, Overtaken::tasks_failed)(*by).value_or(Overtaken::twin) : Overtaken::twin;
}

std::string to_json(const State& state) { return write_record(state); }

Result<State> parse_state(std::string_view text) {
  return read_record<State>(text, "the job's stored state", k_own_rules, Code::state_unreadable);
}

}  // namespace gridctl::job
