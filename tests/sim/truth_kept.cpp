// SPDX-License-Identifier: Apache-2.0
// What users rely on: what was announced as safe is to be had, what lay there at the end is kept, outputs and words are
// the job's own, and a limit is nobody else's.
#include <algorithm>

#include "base/text.hpp"
#include "host.hpp"
#include "job/going_back.hpp"
#include "job/last_step.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_early = 10 * k_s;          // a limit's host counts by its own clock
constexpr Nanos k_slow = 20 * k_s;           // as long as a message takes on a slow link
constexpr Nanos k_beyond = k_min;            // until a host that counts by itself has ended it: beside the grace
constexpr double k_hour = 3600.0 * k_s;

std::string of_attempt(const JobId& job, Epoch epoch) { return job.value + " epoch " + std::to_string(epoch.value); }

// A job that asks for no checkpoint is given none, whatever its host has.
bool asks_for_none(const SimJob& job) { return job.spec.checkpoint.interval == job::CheckpointPolicy::Interval::off; }

// The kinds of lines that tell a user that something of an attempt is not to be had.
bool tells_loss(std::string_view kind) {
  return kind == "collect_incomplete" || kind == "checkpoint_fetch_failed" || kind == "checkpoint_incomplete" ||
         kind == "host_lost";
}
// The same of a host that is back: that it was given up says nothing of what is fetched from it then.
bool tells_loss_there(std::string_view kind) { return tells_loss(kind) && kind != "host_lost"; }
// Steps have such lines, too. A failed fetch is a note, which Truth always hears of.
bool tells_loss_in_a_step(std::string_view kind) { return tells_loss(kind) && kind != "checkpoint_fetch_failed"; }
bool tells_loss_there_in_a_step(std::string_view kind) { return tells_loss_in_a_step(kind) && tells_loss_there(kind); }
}  // namespace

// --- Checkpoints -----------------------------------------------------------------------------------------------------

void Truth::keep(int laptop, const registry::Checkpoint& c) {
  ++rules_met["K1"];
  const int job = index(c.job);
  committed_.insert({job, c.epoch.value, c.root});
  const auto [known, is_new] = kept_[job].try_emplace(c.seq.value, Kept{c.root, c.stray || c.pinned});
  if (!is_new && known->second.root != c.root)
    throw Violation("K1", "checkpoint " + std::to_string(c.seq.value) + " of " + c.job.value + " on laptop" +
                              std::to_string(laptop) + " is another one now");
}

void Truth::may_go(const JobId& job, CheckpointSeq seq) {
  const auto known = kept_[index(job)].find(seq.value);
  if (known == kept_[index(job)].end()) return;
  if (known->second.is_apart)
    throw Violation("K1", "checkpoint " + std::to_string(seq.value) + " of " + job.value +
                              " is removed, and no rule of keep is about it");
  kept_[index(job)].erase(known);
}

void Truth::check_kept(Laptop& laptop, const JobId& job) {
  registry::AllRecords* records = laptop.records();
  const auto known = kept_.find(index(job));
  if (records == nullptr || known == kept_.end()) return;
  const auto rows = records->checkpoints(job);
  if (!rows) return;
  ++rules_met["K1"];
  for (const auto& [seq, kept] : known->second) {
    const auto row = std::ranges::find_if(*rows, [&](const registry::Checkpoint& one) { return one.seq.value == seq; });
    if (row == rows->end() || row->root != kept.root)
      throw Violation("K1", "checkpoint " + std::to_string(seq) + " of " + job.value + " was safe, and is gone");
  }
}

bool Truth::is_kept(int laptop, const JobId& job, Epoch epoch, const std::function<bool(const Content&)>& fits) const {
  const int number = index(job);
  const auto first = committed_.lower_bound({number, epoch.value, Digest{}});
  for (auto at = first; at != committed_.end() && std::get<0>(*at) == number && std::get<1>(*at) == epoch.value; ++at)
    if (const Content* held = content(std::get<2>(*at)); held != nullptr && fits(*held)) return true;
  // By a commit of which nobody was told.
  registry::AllRecords* records = world_.laptops[static_cast<std::size_t>(laptop)]->records();
  if (records == nullptr) return true;
  const auto rows = records->checkpoints(job);
  return !rows || std::ranges::any_of(*rows, [&](const registry::Checkpoint& one) {
    const Content* held = content(one.root);
    return one.epoch == epoch && held != nullptr && fits(*held);
  });
}

// Only the registry knows the lines of a step that was committed, and told as failed.
bool Truth::is_recorded(const JobId& job, Epoch epoch, bool (*tells)(std::string_view kind)) const {
  const int laptop = world_.jobs[static_cast<std::size_t>(index(job))].laptop;
  registry::AllRecords* records = world_.laptops[static_cast<std::size_t>(laptop)]->records();
  if (records == nullptr) return false;
  const auto lines = records->events(job, 0, 0);
  return lines && std::ranges::any_of(*lines, [&](const registry::EventRecord& one) { return one.epoch == epoch && tells(one.kind); });
}

bool Truth::is_lost_told(const JobId& job, Epoch epoch) const {
  return lost_told_.contains({index(job), epoch.value}) || is_recorded(job, epoch, tells_loss_in_a_step);
}

void Truth::told(int, const JobId& job, const job::Record& record) {
  if (record.kind == "checkpoint_fetch_failed") fetch_failed_.insert({index(job), record.epoch.value});
  if (record.kind == "hangs") check_hung(job, record.epoch, false);
  if (record.kind == "host_lost") given_up_at_.try_emplace({index(job), record.epoch.value}, world_.now);
  if (tells_loss_there(record.kind)) stray_lost_told_.insert({index(job), record.epoch.value});
  // What could not be fetched while the attempt ran may have been fetched since.
  const bool may_pass = record.kind == "checkpoint_fetch_failed" && std::holds_alternative<job::Running>(shadow(job).newest.phase);
  if (tells_loss(record.kind) && !may_pass) lost_told_.insert({index(job), record.epoch.value});
}

// Its host lets go of it: what it would tell of is here.
void Truth::removes(int host, int laptop, const JobId& job, Epoch epoch) {
  if (host == world_.options.liar || asks_for_none(world_.jobs[static_cast<std::size_t>(index(job))])) return;
  const Payload* payload = find(host, index(job), epoch);
  const std::optional<Digest> newest = world_.hosts[static_cast<std::size_t>(host)]->newest_snapshot(laptop, job, epoch);
  if (payload == nullptr || payload->members > 1 || !newest || !shadow(job).newest.overtaken.empty()) return;
  ++rules_met["K2"];
  const Nanos step = content(*newest)->step;
  if (is_kept(laptop, job, epoch, [&](const Content& one) { return one.step >= step; }) || stray_lost_told_.contains({index(job), epoch.value})) return;
  if (is_recorded(job, epoch, tells_loss_there_in_a_step)) return;
  throw Violation("K2", "the last checkpoint of " + of_attempt(job, epoch) + " is removed on host" + std::to_string(host) +
                            ", and kept nowhere");
}

// A gang is done when what all its members had saved last is one checkpoint here.
void Truth::check_last(int laptop, const job::State& before, const job::State& after) {
  const auto* collecting = std::get_if<job::Collecting>(&before.phase);
  if (collecting == nullptr || !collecting->attempt.is_gang() || after.attempt() != nullptr || !after.overtaken.empty()) return;
  if (asks_for_none(world_.jobs[static_cast<std::size_t>(index(before.id))])) return;
  const job::Attempt& attempt = collecting->attempt;
  std::optional<Nanos> step;
  bool alike = true, left = false;
  for (const job::Member& member : attempt.members) {
    // One that was given up while it was asked has a line that says so, also when nobody was told of the commit.
    const bool given_up = std::ranges::any_of(after.pending_cleanups, [&](const job::PendingCleanup& end) {
      return end.stale && end.host == member.host && end.epoch == attempt.epoch;
    });
    // Of a gang that never ran as a whole nobody waits for what some of them left.
    const bool never_ran = !member.end || member.end->kind == job::EndKind::absent ||
                           member.end->kind == job::EndKind::not_started || member.end->kind == job::EndKind::start_failed;
    if (is_liar(member.host) || member.lost() || given_up || never_ran) return;
    const auto newest = world_.hosts[static_cast<std::size_t>(host_index(member.host))]->newest_snapshot(laptop, before.id,
                                                                                                        attempt.epoch);
    alike = alike && newest && content(*newest)->step == step.value_or(content(*newest)->step);
    left = left || (newest && content(*newest)->as_left);
    if (newest) step = content(*newest)->step;
  }
  const auto members = static_cast<int>(attempt.members.size());
  // What nobody is sure of is kept as well, of each member what there is.
  if (left) {
    ++rules_met["K7"];
    if (is_kept(laptop, before.id, attempt.epoch, [&](const Content& one) { return one.parts == members && one.as_left; }) ||
        is_lost_told(before.id, attempt.epoch))
      return;
    throw Violation("K7", of_attempt(before.id, attempt.epoch) + " is over, and what its members left is kept nowhere");
  }
  if (!alike || !step) return;
  ++rules_met["K2"];
  if (is_kept(laptop, before.id, attempt.epoch, [&](const Content& one) { return one.parts == members && one.step >= *step; }) ||
      is_lost_told(before.id, attempt.epoch))
    return;
  throw Violation("K2", of_attempt(before.id, attempt.epoch) + " is over, and what its members saved last is kept nowhere");
}

// --- Outputs and words -----------------------------------------------------------------------------------------------

// Of what a newer attempt has left nothing is taken back by an older one, and of an end nothing by what came before it.
void Truth::results_are(int laptop, const registry::Results& results) {
  if (!results.root) return;
  ++rules_met["K3"];
  const int job = index(results.job);
  const Content* now = content(*results.root);
  if (now == nullptr || !now->is_output || now->job != job || !stored_.contains({laptop, *results.root}))
    throw Violation("K3", "the outputs of " + results.job.value + " are not its own");
  const auto known = results_.find(job);
  const Content* before = known == results_.end() ? nullptr : content(known->second);
  if (before != nullptr && (now->epoch < before->epoch || (now->epoch == before->epoch && (now->step < before->step || before->final > now->final))))
    throw Violation("K3", "the outputs of " + results.job.value + " are older than those that were here");
  results_[job] = *results.root;
}

std::string Truth::signature(const JobId& job, AttemptNumber attempt, int rank) {
  return job.value + " a" + std::to_string(attempt.value) + " r" + std::to_string(rank) + ": ";
}

void Truth::said(const wire::AttemptSpec& spec, const std::string& log) {
  words_[{spec.job.value, spec.attempt.value, spec.gang ? static_cast<int>(spec.gang->node_rank) : 0}] = log;
}

void Truth::logged(const JobId& job, AttemptNumber attempt, int rank, std::uint64_t offset, std::string_view bytes) {
  ++rules_met["K4"];
  const std::string& all = words_[{job.value, attempt.value, rank}];
  if (offset > all.size() || all.substr(offset, bytes.size()) != bytes)
    throw Violation("K4", "what is kept as the output of " + signature(job, attempt, rank) + "is not: " +
                              std::string(bytes.substr(0, 60)));
}

void Truth::check_words(int laptop, const job::State& before, const job::Collected& collected) {
  const job::Attempt* attempt = before.attempt();
  const job::Member* member = attempt == nullptr ? nullptr : attempt->member(collected.rank);
  if (member == nullptr || attempt->epoch != collected.epoch || !collected.problem.empty() || is_liar(member->host)) return;
  const Result<std::string> there = world_.hosts[static_cast<std::size_t>(host_index(member->host))]->read_log(
      laptop, {before.id, attempt->epoch, 0, UINT32_MAX});
  if (!there || there->empty()) return;
  ++rules_met["K4"];
  const std::string* here =
      world_.laptops[static_cast<std::size_t>(laptop)]->folders().log(before.id, attempt->number, collected.rank);
  if (here == nullptr || *here != *there)
    throw Violation("K4", "the output of " + of_attempt(before.id, attempt->epoch) + ", rank " +
                              std::to_string(collected.rank) + ", is not all here when it is over");
  if (!collected.last.empty() && collected.last != job::gist_of(*there))
    throw Violation("K4", "the last line of " + before.id.value + " is another's: " + collected.last);
}

// Of a gang, the words of the member that ended it are told, whoever is collected after it.
void Truth::check_last_line(const job::State& before, const job::State& after, const job::Collected& collected) {
  const auto* was = std::get_if<job::Collecting>(&before.phase);
  const auto* is = std::get_if<job::Collecting>(&after.phase);
  if (was == nullptr || is == nullptr || was->attempt.epoch != is->attempt.epoch || collected.rank == was->end.rank) return;
  ++rules_met["K4"];
  if (was->end.last != is->end.last)
    throw Violation("K4", "the last line of " + before.id.value + " is taken from rank " + std::to_string(collected.rank));
}

// --- Values ----------------------------------------------------------------------------------------------------------

// What a member is started with is its own, as it was written down.
void Truth::check_spec(int host, int laptop, const wire::StartRequest& request) {
  const wire::AttemptSpec& spec = request.spec;
  registry::AllRecords* records = world_.laptops[static_cast<std::size_t>(laptop)]->records();
  if (records == nullptr) return;
  const Result<registry::Job> row = records->job(spec.job);
  const auto* launching = row ? std::get_if<job::Launching>(&row->machine.phase) : nullptr;
  if (launching == nullptr || launching->attempt.epoch != spec.epoch) return;
  const job::Attempt& attempt = launching->attempt;
  const job::Member* member = attempt.on({"host" + std::to_string(host)});
  const auto wants = [&](bool holds, const char* what) {
    if (!holds) throw Violation("V1", of_attempt(spec.job, spec.epoch) + " is started with another " + what + " than its own");
  };
  ++rules_met["V1"];
  wants(member != nullptr, "host");
  wants(spec.gpu_uuids == member->gpu_uuids, "GPU");
  wants(spec.cpus == member->cpus && spec.memory_bytes == member->memory_bytes, "share of its host");
  wants(spec.attempt == attempt.number, "number");
  const bool last = job::is_last_step(row->spec);
  wants(spec.job_name == row->spec.name && spec.run == (last ? row->spec.tasks->finally_run : row->spec.run), "program");
  wants(spec.bag.has_value() == (row->spec.tasks && !last), "kind of work");
  wants(request.lease == row->spec.recovery.lease, "lease");
  const auto env = [&](const char* name) {
    const auto found = spec.envs.find(name);
    return found == spec.envs.end() ? std::string("?") : found->second;
  };
  wants(env("GRIDCTL_NODE_RANK") == std::to_string(member->rank), "rank");
  wants(env("GRIDCTL_NUM_NODES") == std::to_string(attempt.members.size()), "number of hosts");
  wants(env("GRIDCTL_EPOCH") == std::to_string(spec.epoch.value), "epoch");
  wants(env("GRIDCTL_GPUS_PER_NODE") == std::to_string(member->gpu_uuids.size()), "number of GPUs");
  if (row->spec.max_duration)
    wants(request.allowance && request.allowance->run && *request.allowance->run <= *row->spec.max_duration, "running time");
  if (row->spec.deadline && row->spec.deadline->hard) wants(request.allowance && request.allowance->time, "deadline");
  if (const auto inputs = records->inputs(spec.job))
    wants(std::ranges::count_if(*inputs, [](const registry::Input& one) { return one.role == job::k_tasks_role; }) <= 1,
          "set of its tasks' files");
  for (const auto& [name, value] : request.secrets) wants(value == secret_of(index(spec.job)), "secret");
  wants(request.secrets.size() == row->spec.secrets.size(), "number of secrets");
  wants(spec.restore.has_value() == (attempt.resumed_from.value > 0), "beginning");
  if (spec.restore) {
    const auto from = records->checkpoint(spec.job, attempt.resumed_from);
    if (from) wants(from->root == *spec.restore, "checkpoint");
    wants(spec.restore_name == checkpoint_name(spec.job, attempt.resumed_from), "checkpoint's name");
  }
  if (const auto history = records->attempts(spec.job)) {
    std::string before;
    for (const registry::AttemptRecord& one : *history)
      if (one.number < attempt.number) before = one.reason;
    wants(env("GRIDCTL_RESTART_REASON") == before, "reason to restart");
  }
  if (!attempt.is_gang()) return;
  wants(spec.gang.has_value() && spec.gang->node_rank == static_cast<std::uint32_t>(member->rank), "rank in its gang");
  wants(spec.gang->port == launching->port && to_hex(spec.gang->token) == launching->token, "rendezvous");
  wants(spec.gang->members.size() == attempt.members.size(), "gang");
  for (std::size_t i = 0; i < attempt.members.size(); ++i)
    wants(spec.gang->members[i].name == attempt.members[i].host.value &&
              spec.gang->members[i].address == attempt.members[i].address,
          "peer");
}

std::string Truth::secret_of(int job) const { return "secret of job " + std::to_string(family(job)); }

// --- Limits and money ------------------------------------------------------------------------------------------------

// Its host ends it for a limit: one that it has, or its leader, and that it has reached.
void Truth::limit_ends(const Payload& payload, const std::string& limit) {
  if (payload.host == world_.options.liar || clock_is_set()) return;
  ++rules_met["W8"];
  const job::Spec& own = world_.jobs[static_cast<std::size_t>(payload.job)].spec;
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(family(payload.job))].spec;
  const bool has = limit == "budget"         ? spec.budget_total.has_value()
                   : limit == "max_duration" ? own.max_duration.has_value()
                   : limit == "month_budget" ? has_monthly_budgets
                                             : own.deadline && own.deadline->hard;
  if (!has) throw Violation("W8", name(payload) + " is ended at a limit that it does not have: " + limit);
  // An attempt that was given up has run until that was known.
  const auto attempts = std::ranges::count_if(payloads_, [&](const auto& one) { return one->job == payload.job; });
  if (limit != "max_duration" || attempts > 1) return;
  const Nanos ran = world_.now - payload.began_at;
  // Its controller counts what was under way for long as used up: it cannot know when that was sent.
  const bool slow = std::ranges::any_of(world_.options.faults, [&](const Fault& one) {
    return one.kind == FaultKind::slow && one.at < world_.now && one.at + one.duration > payload.began_at;
  });
  if (ran + k_early + (slow ? k_slow : 0) + own.max_duration->count() / 50 < own.max_duration->count())
    throw Violation("W8", name(payload) + " is ended long before its limit");
}

// By what really ran. Prices that change make it another sum.
void Truth::check_money() {
  const auto& faults = world_.options.faults;
  const bool changes = std::ranges::any_of(faults, [](const Fault& one) { return one.kind == FaultKind::price; });
  if (clock_is_set() || changes || world_.options.sleep_launch > 0) return;
  std::map<int, Nanos> asleep;  // by host: nothing ends there meanwhile
  for (const Fault& fault : faults)
    if (fault.kind == FaultKind::host_sleep) asleep[fault.host] += fault.duration;
  std::map<int, double> usd, beyond;
  std::map<std::pair<int, int>, Nanos> paid_until;  // of a bag on one host, whose workers share its price
  for (const auto& one : payloads_) {  // in the order in which they began
    if (one->host == world_.options.liar || static_cast<std::size_t>(one->host) >= world_.options.prices.size()) continue;
    const double price = world_.options.prices[static_cast<std::size_t>(one->host)];
    Nanos& paid = paid_until[{family(one->job), one->host}];
    const bool shares = world_.jobs[static_cast<std::size_t>(family(one->job))].spec.tasks.has_value();
    // What a host does that was given up is not known to anybody: the job goes on elsewhere with what is left.
    const auto given_up = given_up_at_.find({one->job, one->epoch.value});
    const Nanos until = given_up == given_up_at_.end() ? one->ended_at : std::min(one->ended_at, std::max(given_up->second, one->began_at));
    const Nanos from = shares ? std::max(one->began_at, std::min(paid, until)) : one->began_at;
    paid = std::max(paid, until);
    usd[family(one->job)] += price * static_cast<double>(until - from) / k_hour;
    beyond[family(one->job)] += price * static_cast<double>(k_beyond + 30 * k_s + asleep[one->host] + one->alone) / k_hour;
  }
  for (const auto& [job, sum] : usd) {
    const job::Spec& spec = world_.jobs[static_cast<std::size_t>(job)].spec;
    if (!spec.budget_total) continue;
    ++rules_met["M1"];
    if (sum > *spec.budget_total + beyond[job])
      throw Violation("M1", spec.name + " has cost " + std::to_string(sum) + " USD of " + std::to_string(*spec.budget_total));
  }
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Truth::check_left() {
  for (const auto& [number, known] : shadows_) {
    if (!known.submitted) continue;
    const SimJob& job = world_.jobs[static_cast<std::size_t>(number)];
    Laptop& laptop = *world_.laptops[static_cast<std::size_t>(job.laptop)];
    check_kept(laptop, job.id);
    ++rules_met["L6"];
    if (laptop.folders().has_secrets(job.id) && !laptop.folders().removal_failed(job.id) && laptop.deaths() == 0)
      throw Violation("L6", "secrets of " + job.id.value + " are left on laptop" + std::to_string(job.laptop));
    const auto results = results_.find(number);
    const bool wants = !job.spec.outputs.empty() && known.newest.visible() == job::JobState::succeeded &&
                       known.newest.overtaken.empty() && !is_lost_told(job.id, known.newest.epoch) && world_.options.liar < 0;
    if (wants && (results == results_.end() || !content(results->second)->final || content(results->second)->epoch != known.newest.epoch))
      throw Violation("K3", "the outputs of " + job.id.value + ", which has succeeded, are not here");
  }
  check_money();
}

}  // namespace gridctl::sim
