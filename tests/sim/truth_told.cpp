// SPDX-License-Identifier: Apache-2.0
// What is told and what is: rows say what hosts said, daemons believe what is recorded, what a running job saves comes
// here, leases of those that are heard are renewed, who waits gets what is free, and nothing is left on hosts.
#include <algorithm>
#include <utility>

#include "host.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {

constexpr Nanos k_look_at_belief = 10 * k_s;
constexpr int k_looks_apart = 4;             // in a row, until a difference is none of a commit that is under way
constexpr Nanos k_undisturbed = k_min, k_heard = 20 * k_s;
constexpr Nanos k_fetched = 75 * k_s;        // beside what transfers take: members of a gang wait for each other
constexpr Nanos k_renewed = 20 * k_s;
constexpr Nanos k_idle = 3 * k_min;          // who waits looks again after a minute at the latest, in its turn
constexpr int k_barren = 4;                  // attempts in a row without a checkpoint; others are preferred before
constexpr int k_own_kills = 8;               // in a row: before, its program is charged with them
constexpr std::int64_t k_rest_ms_max = 60'000;
constexpr Nanos k_held_back = 25 * k_s;      // until what a cut connection held, or a slow one carries, has arrived
constexpr int k_looks_keeping = 4;           // in a row, until a place that was kept is given back

[[noreturn]] void untrue(const char* rule, const JobId& job, const std::string& what) {
  throw Violation(rule, job.value + " " + what);
}

bool is_simple(const job::Spec& spec) {
  return spec.num_nodes == 1 && spec.twins == 1 && spec.twin_of.value.empty() && !spec.service && !spec.tasks;
}

}  // namespace

void Truth::check_row(const registry::Checkpoint& row) const {
  const Content& held = *content(row.root);
  if (row.as_left == held.as_left && row.torn == held.torn && row.provisional == held.as_left) return;
  throw Violation("V3", "checkpoint " + std::to_string(row.seq.value) + " of " + row.job.value +
                            " is not recorded as what its host told");
}

void Truth::check_told(Laptop& laptop, const control::TrackedJob& job) {
  check_believed(laptop, job);
  check_fresh(laptop, job);
  check_renewed(laptop, job);
  check_idle(laptop, job);
  check_keeping(laptop, job);
}

// Who has found a place keeps no other from others, unless it moves there.
void Truth::check_keeping(Laptop& laptop, const control::TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  int& looks = keeping_[job.id().value];
  if (attempt == nullptr || !job.state().moving().empty()) return void(looks = 0);
  ++rules_met["W11"];
  std::string kept;
  for (const HostName& host : laptop.controller()->placement().hosts_of(job))
    if (attempt->on(host) == nullptr) kept = host.value;
  looks = kept.empty() ? 0 : looks + 1;
  if (looks >= k_looks_keeping) untrue("W11", job.id(), "has its place, and keeps " + kept + " from others");
}

void Truth::check_believed(Laptop& laptop, const control::TrackedJob& job) {
  const std::string& id = job.id().value;
  int& looks = differs_[id];
  Nanos& next = next_look_at_belief_[id];
  if (looks == 0 && world_.now < next) return;
  next = world_.now + k_look_at_belief;
  const Result<registry::Job> row = laptop.records()->job(job.id());
  if (!row) return;
  ++rules_met["V5"];
  looks = row->machine == job.state() ? 0 : looks + 1;
  if (looks >= k_looks_apart) untrue("V5", job.id(), "is believed to be in another state than is recorded");
}

// The newest step that all members tell of is a checkpoint here before long.
void Truth::check_fresh(Laptop& laptop, const control::TrackedJob& job) {
  const auto* running = job.in<job::Running>();
  const std::string& id = job.id().value;
  // After a failure it is tried again later and later.
  const bool is_quiet = !fetch_failed_.contains({index(job.id()), job.state().epoch.value});
  const bool judged = running != nullptr && !job.state().cancel && job.state().overtaken.empty() && is_quiet &&
                      job.spec().checkpoint.interval != job::CheckpointPolicy::Interval::off &&
                      world_.now - laptop.clear_since() > k_heard && has_answered_for_long(laptop, job.state());
  if (!judged) return void(stale_.erase(id));
  const job::Attempt& attempt = running->attempt;
  std::vector<Nanos> common;
  for (const job::Member& member : attempt.members) {
    if (is_liar(member.host)) return;
    if (member.part >= job::Part::ended) return void(stale_.erase(id));  // what it left is fetched when its gang ends
    const Host& host = *world_.hosts[static_cast<std::size_t>(host_index(member.host))];
    if (host.disk_full || laptop.waits_for_files_of(member.host)) return void(stale_.erase(id));
    const std::vector<Nanos> steps = host.told_steps(laptop.index(), job.id(), attempt.epoch);
    if (&member == &attempt.members.front()) common = steps;
    else std::erase_if(common, [&](Nanos step) { return std::ranges::find(steps, step) == steps.end(); });
  }
  if (common.empty()) return;
  ++rules_met["K6"];
  const auto members = static_cast<int>(attempt.members.size());
  const auto is_here = [&](Nanos step) {
    return is_kept(laptop.index(), job.id(), attempt.epoch, [&](const Content& one) { return one.parts == members && one.step >= step; });
  };
  auto known = stale_.find(id);
  if (known != stale_.end() && (known->second.epoch != attempt.epoch || is_here(known->second.step))) stale_.erase(known), known = stale_.end();
  if (known == stale_.end()) {
    if (!is_here(common.back())) stale_[id] = {attempt.epoch, common.back(), world_.now};
    return;
  }
  if (world_.now - known->second.since > k_fetched + 8 * world_.options.transfer_time)
    untrue("K6", job.id(), "runs on, and what it has saved long ago is not fetched");
}

// A host that answers is told that its attempt may go on.
void Truth::check_renewed(Laptop& laptop, const control::TrackedJob& job) {
  const auto* running = job.in<job::Running>();
  if (running == nullptr) return;
  for (const job::Member& member : running->attempt.members) {
    const int at = host_index(member.host);
    const std::pair key{job.id().value, at};
    const Host& host = *world_.hosts[static_cast<std::size_t>(at)];
    const std::optional<Duration> left = host.lease_left(laptop.index(), job.id(), running->attempt.epoch);
    const bool judged = left && !is_liar(member.host) && !host.disk_full && (world_.healed || world_.options.point_faults == 0) &&
                        has_answered_for_long(laptop, job.state());
    if (judged) ++rules_met["L7"];
    if (!judged || *left > job.state().policy.lease / 2) {
      unrenewed_since_.erase(key);
      continue;
    }
    if (world_.now - unrenewed_since_.try_emplace(key, world_.now).first->second > k_renewed)
      untrue("L7", job.id(), "runs on " + member.host.value + ", which answers, and its lease is not renewed");
  }
}

// Once all is well: who waits for room gets a host that is free.
void Truth::check_idle(Laptop& laptop, const control::TrackedJob& job) {
  const auto* waiting = job.in<job::Waiting>();
  const std::string& id = job.id().value;
  const bool waits = world_.healed && waiting != nullptr && waiting->why == "waiting_for_provider" && is_simple(job.spec()) &&
                     job.state().setbacks.empty() && world_.options.laptops == 1;
  bool free = false;
  if (waits && !is_behind_a_gang(laptop, job))
    for (int host = 0; host < world_.options.hosts; ++host) {
      const HostName name{"host" + std::to_string(host)};
      // A host that fails far more often than others gets jobs only when none of the others could take them.
      sched::HostFacts facts;
      facts.name = name;
      laptop.controller()->fleet().reliability().apply(facts);
      const bool avoided = !facts.shunned.empty() ||
                           std::ranges::any_of(job.state().avoided, [&](const job::Avoided& one) { return one.host == name; });
      free = free || (!avoided && could_take(laptop, host, job.spec()));
    }
  const auto& book = laptop.controller()->book().all();
  // What is free may be kept for another whose turn comes first.
  const auto waiting_jobs = std::ranges::count_if(book, [](const auto& entry) {
    const control::TrackedJob& one = *entry.second;
    return one.in<job::Waiting>() != nullptr;
  });
  if (!free || waiting_jobs > 1 || std::ranges::any_of(book, [](const auto& entry) { return !entry.second->state().moving().empty(); }))
    return void(free_since_.erase(id));
  ++rules_met["L8"];
  if (world_.now - free_since_.try_emplace(id, world_.now).first->second > k_idle)
    untrue("L8", job.id(), "waits, though a host is free that could take it");
}

// A host that rests is left alone; where others can take it, none is chosen that has failed it; else they have turns.
void Truth::check_choice(int laptop, const job::State& before, const job::State& after) {
  Laptop& there = *world_.laptops[static_cast<std::size_t>(laptop)];
  const job::Attempt& attempt = *after.attempt();
  const std::int64_t now = there.wall().ms;
  ++rules_met["W9"];
  for (const job::Member& member : attempt.members)
    for (const job::Setback& one : before.setbacks)
      if (one.host == member.host && one.until.ms > now && one.until.ms - now <= k_rest_ms_max)
        untrue("W9", after.id, "is placed on " + member.host.value + ", which it should leave alone for a while");
  for (const job::Setback& one : before.setbacks)
    if (one.host.empty() && one.cause == job::Cause::killed && one.in_row > k_own_kills)
      untrue("W9", after.id, "begins for the " + std::to_string(one.in_row) + "th time though its program kills itself");
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(index(after.id))].spec;
  std::pair<HostName, int>& row = barren_on_[after.id.value];
  const bool saved_nothing = before.head.value == 0 && before.saved.list.empty();
  row = {attempt.lead().host, saved_nothing && row.first == attempt.lead().host ? row.second + 1 : 0};
  // When a month's budget is used up, only hosts that cost nothing are left.
  if (!is_simple(spec) || has_monthly_budgets || there.controller() == nullptr || world_.now - there.clear_since() < k_heard) return;
  const auto turn = [&](const HostName& host) {
    const auto found = std::ranges::find_if(before.avoided, [&](const job::Avoided& one) { return one.host == host; });
    return found == before.avoided.end() ? 0 : found - before.avoided.begin() + 1;
  };
  const HostName& chosen = attempt.lead().host;
  const control::TrackedJob* tracked = std::as_const(*there.controller()).book().find(after.id);
  // Where it could not be started at all, nothing is held against the host.
  const bool began = std::ranges::all_of(before.setbacks, [](const job::Setback& one) { return one.host.empty(); });
  const bool barren = began && row.second >= k_barren && before.restarts_in_row >= k_barren;
  if (turn(chosen) == 0 && !barren) return;
  for (int host = 0; host < world_.options.hosts; ++host) {
    const HostName name{"host" + std::to_string(host)};
    const auto since = answers_since_.find({laptop, host});
    const bool rests = std::ranges::any_of(before.setbacks, [&](const job::Setback& one) { return one.host == name; });
    if (name == chosen || rests || since == answers_since_.end() || world_.now - since->second < k_heard) continue;
    if ((turn(name) < turn(chosen) || (barren && turn(name) == 0)) && could_take(there, host, tracked == nullptr ? spec : tracked->spec()))
      untrue("W9", after.id, "is placed on " + chosen.value + ", where it has come to nothing later than on " + name.value + ", which is free");
  }
}

void Truth::check_move(int laptop, const job::State& before, const job::MoveRequested& move) {
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(index(before.id))].spec;
  if (move.why != job::k_for_deadline || !spec.deadline || clock_is_set()) return;
  Laptop& there = *world_.laptops[static_cast<std::size_t>(laptop)];
  const Result<registry::Job> row = there.records()->job(before.id);
  if (!row) return;
  ++rules_met["W10"];
  if (there.wall().ms > job::moment_of(*spec.deadline, row->submitted_at).ms + k_s / k_ms)
    untrue("W10", before.id, "moves for a deadline that has passed");
}

// What lies ready for an attempt that may come goes with the job.
void Truth::check_standbys() const {
  for (const auto& host : world_.hosts)
    for (const auto& [key, standby] : host->standbys()) {
      const Laptop& laptop = *world_.laptops[static_cast<std::size_t>(key.first)];
      const auto known = shadows_.find(world_.index_of({key.second}));
      if (known == shadows_.end() || host->name() == HostName{"host" + std::to_string(world_.options.liar)}) continue;
      // Its removal is tried once: only what was made in the healed world is surely gone with the job.
      // A request that is very late may arrive after the one that takes it back.
      const bool judged = known->second.done && world_.options.long_delay == 0 &&
                          standby.at > healed_at_ + k_held_back && standby.daemons == laptop.deaths();
      if (judged)
        throw Violation("L9", host->name().value + " keeps a checkpoint ready of " + key.second + ", which is over");
    }
}

}  // namespace gridctl::sim
