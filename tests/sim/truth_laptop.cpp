// SPDX-License-Identifier: Apache-2.0
// What laptops believe, held against what is.
#include <algorithm>

#include "bag_truth.hpp"
#include "control/follow/limits.hpp"
#include "faults.hpp"
#include "host.hpp"
#include "service_truth.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {

constexpr Nanos k_witness_counts = 8 * k_s;  // another host's answer, until the next is due; and a tick

constexpr int k_always_kept = 2;  // newest checkpoints of a job
constexpr std::uint64_t k_epochs = std::uint64_t{1} << 62;

template <class Event>
const Event* as(const job::Event& what) {
  return std::get_if<Event>(&what);
}

}  // namespace

void Truth::submitted(int job) {
  Shadow& shadow = shadows_[job];
  shadow.submitted = true;
  shadow.newest.id = world_.jobs[static_cast<std::size_t>(job)].id;
}

void Truth::cancelled(int job) { shadows_[job].cancelled = true; }

void Truth::may_resume(int job) {
  shadows_[job].cancelled = shadows_[job].done = false;
  shadows_[job].resumed_at = world_.now;
}

void Truth::resumed(int job, const job::State& state) {
  may_resume(job);
  shadows_[job].newest = state;
}

void Truth::heard(int laptop, int host) {
  const Node& node = world_.node(laptop);
  heard_at_[{laptop, host}] = {node.awake(world_.now), node.naps};
}

// Everything that was acknowledged before must still be there, in whatever order processes crash and read.
void Truth::looked(int laptop, const job::State& state) {
  const Shadow& known = shadow(state.id);
  const std::string which = state.id.value + " as laptop" + std::to_string(laptop) + " reads it";
  if (state.epoch < known.newest.epoch) throw Violation("S3", which + " has lost its epoch");
  if (state.head < known.newest.head) throw Violation("S3", which + " has lost its head");
  if (known.done && !(state.phase == known.newest.phase)) throw Violation("S4", which + " is not final any more");
  if (known.cancelled && !state.cancel && !job::is_final(state.visible()))
    throw Violation("S3", which + " has lost its cancellation");
  if (state.epoch > known.newest.epoch) check_apart(state);
  shadow(state.id).newest = state;
  if (job::is_final(state.visible())) shadow(state.id).done = true;
}

void Truth::lost_job(int laptop, const JobId& job, const std::string& why) {
  if (shadow(job).submitted)
    throw Violation("S3", job.value + " is lost on laptop" + std::to_string(laptop) + ": " + why);
}

void Truth::stored(int laptop, const Digest& root) { stored_.insert({laptop, root}); }

void Truth::committed(int laptop, const registry::Checkpoint& c, const job::State& before, bool became_head) {
  const std::string which =
      "checkpoint " + std::to_string(c.seq.value) + " of " + c.job.value + " epoch " + std::to_string(c.epoch.value);
  const Content* held = content(c.root);
  if (!stored_.contains({laptop, c.root})) throw Violation("S6", which + " is committed without all its bytes");
  if (held == nullptr) throw Violation("S6", which + " has bytes that no program has written");
  if (family(held->job) != family(index(c.job)))
    throw Violation("S6", which + " is of job" + std::to_string(held->job));
  const auto made = std::find_if(payloads_.begin(), payloads_.end(),
                                 [&](const auto& one) { return one->job == held->job && one->epoch == c.epoch; });
  if (made != payloads_.end() && held->parts != (*made)->members)
    throw Violation("S6", which + " lacks parts of members");
  const auto attempt = shadow(c.job).attempts.find(c.epoch.value);
  if (attempt != shadow(c.job).attempts.end() && attempt->second != c.attempt.value)
    throw Violation("S6", which + " is filed under attempt " + std::to_string(c.attempt.value));
  check_row(c);
  keep(laptop, c);
  if (!became_head) return;
  if (c.epoch != before.epoch || c.epoch < shadow(c.job).newest.epoch)
    throw Violation("S2", which + " of a fenced epoch becomes the head");
  if (c.seq <= before.head) throw Violation("S2", which + " becomes the head though a later one was");
  upload.add(world_.now - held->made_at);
}

void Truth::listed(const std::vector<registry::Checkpoint>& all) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (const registry::Checkpoint& c : all)
    if (!seen.emplace(c.epoch.value, c.host_number).second)
      throw Violation("S8",
                      "a checkpoint of " + c.job.value + " epoch " + std::to_string(c.epoch.value) + " is kept twice");
  if (all.empty()) return;
  Shadow& known = shadow(all.front().job);
  known.kept.clear();
  known.kept_at = world_.now;
  for (const registry::Checkpoint& c : all)
    if (!c.stray && !c.as_left) known.kept.push_back(c.seq);
  known.left.clear();
  for (const registry::Checkpoint& c : all)
    if (!c.stray && c.as_left) known.left.push_back(c.seq);
}

void Truth::head_is(int laptop, const job::State& state, const Result<registry::Checkpoint>& row) {
  const std::string which = "the head of " + state.id.value;
  if (!row) {
    if (row.error().code == Code::not_found && !job::is_final(state.visible()))
      throw Violation("S7", which + " is not there");
    return;
  }
  const Content* held = content(row->root);
  if (held == nullptr || family(held->job) != family(index(state.id)) || !stored_.contains({laptop, row->root}))
    throw Violation("S6", which + " is not whole");
  if (row->stray) throw Violation("S2", which + " is a stray");
}

void Truth::dropped(int laptop, const JobId& job, CheckpointSeq seq) {
  const Shadow& known = shadow(job);
  const auto newer = std::count_if(known.kept.begin(), known.kept.end(), [&](CheckpointSeq one) { return one > seq; });
  const bool is_left = std::ranges::find(known.left, seq) != known.left.end();
  if (known.kept_at == world_.now && is_left && seq == known.left.back())
    throw Violation("S7", "laptop" + std::to_string(laptop) + " removes what " + job.value + " has left last");
  if (known.kept_at == world_.now && !is_left && newer < std::max(world_.options.keep, k_always_kept))
    throw Violation("S7", "laptop" + std::to_string(laptop) + " removes one of the newest checkpoints of " + job.value);
  if (seq == known.newest.head && !job::is_final(known.newest.visible()))
    throw Violation("S7", "laptop" + std::to_string(laptop) + " removes the head of " + job.value);
}

void Truth::starts_from(const JobId& job, CheckpointSeq seq, const Result<registry::Checkpoint>& row) {
  const auto* launching = std::get_if<job::Launching>(&shadow(job).newest.phase);
  if (launching == nullptr || launching->attempt.resumed_from != seq) return;
  if (!row && row.error().code == Code::not_found)
    throw Violation("S7", "the checkpoint that " + job.value + " starts from is not there");
  if (row && row->stray) throw Violation("S2", job.value + " starts from a stray");
  if (row && row->torn) throw Violation("S2", job.value + " starts from a torn checkpoint");
}

void Truth::check_end(const job::State& before, const job::AttemptEnded& ended) {
  const job::Attempt* attempt = before.attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->member(ended.end.rank);
  if (member == nullptr || attempt->epoch != ended.epoch || is_liar(member->host)) return;
  const Payload* payload = find(host_index(member->host), index(before.id), ended.epoch);
  const std::string which = before.id.value + " epoch " + std::to_string(ended.epoch.value);
  if (payload != nullptr && payload->alive)
    throw Violation("L3", which + " runs well on " + member->host.value + " and is taken for ended (" +
                              std::string(job::end_kind_name(ended.end.kind)) + ")");
  if (ended.end.success() && (payload == nullptr || payload->why != Why::finished))
    throw Violation("S4", which + " did not succeed, but is said to have");
  if (payload != nullptr && payload->why == Why::finished && !ended.end.success() &&
      ended.end.kind != job::EndKind::absent && ended.end.kind != job::EndKind::host_rebooted)
    throw Violation(
        "L3", which + " finished, but is said to have ended as " + std::string(job::end_kind_name(ended.end.kind)));
}

void Truth::check_needless(int laptop, const job::State& before, const job::Event& what) {
  const auto* lost = as<job::HostLost>(what);
  const job::Attempt* attempt = before.attempt();
  const job::Member* member = lost == nullptr || attempt == nullptr ? nullptr : attempt->member(lost->rank);
  if (member == nullptr || attempt->epoch != lost->epoch) return;
  const Nanos awake = world_.node(laptop).awake(world_.now);
  const auto heard = [&](int host) {
    const auto found = heard_at_.find({laptop, host});
    return found == heard_at_.end() ? Heard{} : found->second;
  };
  const int host = host_index(member->host);
  const Nanos patience = before.policy.lost_after.count();
  // A nap of the laptop that is too short to be told from a slow disk counts for up to a second.
  const Nanos slack = k_s * (1 + world_.node(laptop).naps - heard(host).naps);
  const Nanos silent = awake - heard(host).awake;
  if (silent < patience - slack)
    throw Violation("L3", member->host.value + " is given up after " + std::to_string(silent / k_ms) +
                              " ms of silence, " + std::to_string(patience / k_ms) + " ms are its due");
  // Others answered until its time was up. That may be long ago: a full disk keeps the loss from being recorded.
  bool witness = false;
  for (int other = 0; other < world_.options.hosts; ++other)
    witness =
        witness || (other != host && heard(other).awake + k_witness_counts >= heard(host).awake + patience - slack);
  if (!witness) throw Violation("L3", member->host.value + " is given up while nobody answers at all");
}

void Truth::check_final(const job::State& before, const job::State& after) {
  Shadow& known = shadow(after.id);
  // `before` is what its daemon knew, which may not have heard of a resumption.
  if (std::holds_alternative<job::Done>(before.phase) && !(before.phase == after.phase) && known.done)
    throw Violation("S4", after.id.value + " changes after it was final");
  if (!std::holds_alternative<job::Done>(after.phase) || known.done) return;
  known.done = true;
  known.done_at = finished_at_ = world_.now;
  // It was final before, by a commit that was done and reported as failed: this is only the first that is heard of it.
  if (std::holds_alternative<job::Done>(before.phase)) return;
  const auto* collecting = std::get_if<job::Collecting>(&before.phase);
  if (collecting != nullptr && collecting->end.success() && !after.policy.endless && after.visible() != job::JobState::succeeded &&
      after.overtaken_by != job::Overtaken::tasks_failed)
    throw Violation("S4", after.id.value + " succeeded, and is said not to have");
  const job::Attempt* attempt = before.attempt();
  if (!after.overtaken.empty() && after.overtaken_by != job::Overtaken::twin)
    return world_.bags->ends(after.id, after.overtaken_by == job::Overtaken::tasks_done);
  if (after.visible() != job::JobState::succeeded) return;
  if (!after.overtaken.empty()) return check_overtaken(after);
  if (attempt == nullptr || attempt->epoch != after.epoch)
    throw Violation("S4", after.id.value + " succeeds by an old epoch");
  for (const job::Member& member : attempt->members) {
    if (is_liar(member.host)) continue;
    const Payload* payload = find(host_index(member.host), index(after.id), attempt->epoch);
    if (payload == nullptr || payload->alive || payload->why != Why::finished)
      throw Violation("S4", after.id.value + " is said to have succeeded, but has not");
  }
}

// By the result of a twin.
void Truth::check_overtaken(const job::State& after) {
  const int leader = family(index(after.id));
  for (const auto& [other, known] : shadows_)
    if (other != leader && family(other) == leader && known.newest.visible() == job::JobState::succeeded) return;
  throw Violation("S4", after.id.value + " is said to have been overtaken, but no twin has succeeded");
}

// What is nobody's fault is recorded with certainty only.
void Truth::check_never(int laptop, const job::State& before, const job::LaunchFailed& failed) {
  ++rules_met["V2"];
  if (failed.hopeless && failed.detail.find("no secret") != std::string::npos)
    throw Violation("V2", before.id.value + " is given up for want of a secret that its user has given");
  const job::Attempt* attempt = before.attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->member(failed.rank);
  if (member == nullptr || attempt->epoch != failed.epoch || failed.host_fault) return;
  recorded_never(host_index(member->host), laptop, before.id, failed.epoch);
}

// Nothing that the host has safe and would tell of is left there.
void Truth::check_collected(int laptop, const job::State& before, const job::Collected& collected) {
  const job::Attempt* attempt = before.attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->member(collected.rank);
  if (member == nullptr || attempt->epoch != collected.epoch || !collected.problem.empty() || is_liar(member->host))
    return;
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(world_.index_of(before.id))].spec;
  if (spec.checkpoint.interval == job::CheckpointPolicy::Interval::off) return;  // takes none, whatever the host has
  const Host& host = *world_.hosts[static_cast<std::size_t>(host_index(member->host))];
  const std::optional<Digest> newest = host.newest_snapshot(laptop, before.id, collected.epoch);
  if (newest && !stored_.contains({laptop, *newest}))
    throw Violation("S7", "the last checkpoint of " + before.id.value + " epoch " +
                              std::to_string(collected.epoch.value) + " is left on " + member->host.value);
}

// A twin ends with its leader: at once when there is a result, else it saves.
void Truth::check_reason(const job::State& before, const job::LimitReached& limit) {
  if (limit.limit != control::k_limit_leader) return;
  // Nothing of a worker is waited for when its bag goes on to its last step.
  const SimJob& plan = world_.jobs[static_cast<std::size_t>(family(index(before.id)))];
  if (plan.spec.tasks && world_.bags->read(plan.id).progress().over()) return;
  const job::State& leader = shadows_[family(index(before.id))].newest;
  const bool has_result = leader.visible() == job::JobState::succeeded || !leader.overtaken.empty();
  if (has_result != (limit.grace == Duration::zero()))
    throw Violation("W2", before.id.value + " is stopped " + (has_result ? "slowly" : "without saving"));
}

void Truth::stepped(int laptop, const job::State& before, const job::Event& what, const job::State& after) {
  Shadow& known = shadow(after.id);
  world_.services->stepped(laptop, before, what, after);
  if (after.epoch < before.epoch || after.epoch < known.newest.epoch)
    throw Violation("S2", after.id.value + " goes back to an older epoch");
  if (after.head < before.head) throw Violation("S2", after.id.value + " goes back to an older head");
  if (after.epoch.value > k_epochs) throw Violation("L1", after.id.value + " runs out of epochs by a host's word");
  if (const auto* ended = as<job::AttemptEnded>(what)) check_end(before, *ended);
  if (const auto* failed = as<job::LaunchFailed>(what)) check_never(laptop, before, *failed);
  if (as<job::Placed>(what) != nullptr && after.epoch > before.epoch) check_placed(laptop, before, after);
  if (const auto* collected = as<job::Collected>(what)) check_collected(laptop, before, *collected), check_words(laptop, before, *collected);
  if (const auto* limit = as<job::LimitReached>(what)) check_reason(before, *limit);
  if (const auto* collected = as<job::Collected>(what)) check_last_line(before, after, *collected);
  if (const auto* move = as<job::MoveRequested>(what)) check_move(laptop, before, *move);
  const auto* hung = as<job::Hung>(what);
  if (hung != nullptr && world_.jobs[static_cast<std::size_t>(index(after.id))].spec.service == std::nullopt) check_hung(after.id, hung->epoch, true);
  check_needless(laptop, before, what);
  check_final(before, after);
  check_last(laptop, before, after);
  if (std::holds_alternative<job::Running>(after.phase)) world_.jobs[static_cast<std::size_t>(index(after.id))].start_problems = 0;
  if (as<job::LaunchFailed>(what) != nullptr) ++world_.jobs[static_cast<std::size_t>(index(after.id))].start_problems;
  if (const job::Attempt* attempt = after.attempt()) known.attempts[attempt->epoch.value] = attempt->number.value;
  if (after.epoch > before.epoch && before.epoch.value > 0) ++restarts;
  if (after.attempt() != nullptr && after.phase.index() != before.phase.index()) strike_rich(world_, laptop, *after.attempt());
  known.newest = after;
}

}  // namespace gridctl::sim
