// SPDX-License-Identifier: Apache-2.0
// What users want of their jobs and hosts: limits are held, twins are apart, a host to be emptied is left, and who
// is more urgent gets room. Held to it only when nothing has hindered the daemon for a while.
#include <algorithm>
#include <utility>

#include "host.hpp"
#include "job/image_reference.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {

constexpr Nanos k_look_at_kept = 30 * k_s;
constexpr Nanos k_heed = 20 * k_s;  // until a wish shows: the daemon reads, asks and commits

[[noreturn]] void broken(const char* rule, const JobId& job, const std::string& what) {
  throw Violation(rule, job.value + " " + what);
}

bool is_stopping(const job::State& state) {
  return state.cancel || !state.overtaken.empty() || std::holds_alternative<job::Done>(state.phase) ||
         std::holds_alternative<job::Collecting>(state.phase);
}

int gpus_of(const job::Spec& spec) {
  int gpus = 0;
  for (const job::GpuRequest& request : spec.resources.gpus) gpus = std::max(gpus, request.count_min);
  return gpus;
}

}  // namespace

void Truth::wants_empty(int laptop, int host, bool drained) {
  if (!drained) emptied_since_.erase({laptop, host});
  else emptied_since_.emplace(std::pair{laptop, host}, world_.now);
}

// By the registry's count of a while ago. A twin has the budget of its leader.
void Truth::check_used_up(int laptop, const job::State& after) {
  Laptop& there = *world_.laptops[static_cast<std::size_t>(laptop)];
  const int leader = family(index(after.id));
  const job::Spec& own = world_.jobs[static_cast<std::size_t>(index(after.id))].spec;
  const std::optional<double>& budget = world_.jobs[static_cast<std::size_t>(leader)].spec.budget_total;
  if (clock_is_set() || world_.now - std::max(there.clear_since(), shadow(after.id).resumed_at) < k_heed || there.records() == nullptr) return;
  const WallTime before{there.wall().ms - k_heed / k_ms};
  const Result<registry::Job> row = there.records()->job(after.id);
  const Result<registry::Spent> spent = there.records()->spent(after.id, before);
  const Result<registry::Spent> in_all = there.records()->spent(world_.jobs[static_cast<std::size_t>(leader)].id, before);
  if (!row || !spent || !in_all) return;
  ++rules_met["W3"];
  if (own.max_duration && spent->ran > *own.max_duration) broken("W3", after.id, "is placed, though it has run as long as it may");
  if (budget && in_all->usd > *budget) broken("W3", after.id, "is placed, though its budget is used up");
  if (own.deadline && own.deadline->hard && before > job::moment_of(*own.deadline, row->submitted_at))
    broken("W3", after.id, "is placed after its deadline");
}

void Truth::check_placed(int laptop, const job::State& before, const job::State& after) {
  const job::Attempt* attempt = after.attempt();
  if (attempt == nullptr) return;
  check_used_up(laptop, after);
  check_choice(laptop, before, after);
  const Laptop& there = *world_.laptops[static_cast<std::size_t>(laptop)];
  for (const job::Member& member : attempt->members) {
    const auto since = emptied_since_.find({laptop, host_index(member.host)});
    if (since != emptied_since_.end() && world_.now - std::max(since->second, there.clear_since()) > k_heed)
      broken("W1", after.id, "is placed on " + member.host.value + ", which is to be emptied");
  }
  const int leader = family(index(after.id));
  for (const auto& [other, known] : shadows_)
    if (other != index(after.id) && family(other) == leader && known.newest.visible() == job::JobState::succeeded)
      broken("W2", after.id, "is placed though " + known.newest.id.value + " has its result");
  check_apart(after);
  check_size(after);
}

// Also of a placement that is only seen when it is read back.
void Truth::check_apart(const job::State& state) {
  const job::Attempt* attempt = state.attempt();
  if (world_.jobs[static_cast<std::size_t>(index(state.id))].spec.tasks) return;  // workers of a bag may share a host
  if (attempt == nullptr || is_stopping(state)) return;
  const int leader = family(index(state.id));
  for (const job::Member& member : attempt->members)
    for (const auto& [other, known] : shadows_) {
      if (other == index(state.id) || family(other) != leader || is_stopping(known.newest)) continue;
      const job::Attempt* its = known.newest.attempt();
      if (its != nullptr && its->on(member.host) != nullptr)
        broken("W2", state.id, "is placed on " + member.host.value + ", where another twin of it is");
    }
}

// By what the daemon knows just then.
void Truth::start_sent(Laptop& laptop, const JobId& id, Epoch epoch) {
  if (laptop.controller() == nullptr) return;
  const control::TrackedJob* job = std::as_const(*laptop.controller()).book().find(id);
  if (job == nullptr || job->unsure || job->in<job::Launching>() == nullptr || job->state().epoch != epoch)
    broken("S5", id, "is sent a START of epoch " + std::to_string(epoch.value) + ", which is not wanted any more");
  check_start(id, epoch);
}

// What is listed as seen last is so: every half a minute of a host that answers.
void Truth::check_seen(Laptop& laptop) {
  Nanos& next = next_look_at_seen_[laptop.index()];
  if (world_.now < next) return;
  next = world_.now + k_min;
  if (clock_is_set()) return;
  const Result<std::vector<registry::Provider>> all = laptop.records()->providers();
  if (!all) return;
  for (const registry::Provider& provider : *all) {
    const control::FleetHost* host = laptop.controller()->fleet().find(provider.name);
    if (host == nullptr || !host->is_up() || host->boot_id.empty()) continue;
    const std::optional<BootTime> last = host->monitor->last_answer();
    const bool fresh = last && laptop.boot() - *last < std::chrono::seconds{5};
    int& looks = answers_for_[{laptop.index(), host_index(provider.name)}];
    looks = fresh ? looks + 1 : 0;
    if (looks > 3 && (!provider.last_seen_at || laptop.wall().ms - provider.last_seen_at->ms > 3 * k_min / k_ms))
      throw Violation("W6", provider.name.value + " answers, and is listed as not seen for long");
  }
}

// What a daemon that was killed has committed last may have been the end of a job, which no daemon reads any more.
void Truth::look_at_forgotten(Laptop& laptop) {
  for (std::size_t i = 0; i < world_.jobs.size(); ++i) {
    const JobId& id = world_.jobs[i].id;
    if (world_.jobs[i].laptop != laptop.index() || !knows(id) || !shadow(id).newest.needs_controller()) continue;
    if (std::as_const(*laptop.controller()).book().find(id) != nullptr) continue;
    const Result<registry::Job> row = laptop.records()->job(id);
    if (row) looked(laptop.index(), row->machine);
    else if (row.error().code == Code::not_found) lost_job(laptop.index(), id, "not found");
  }
}

void Truth::audit(Laptop& laptop) {
  const Nanos clear = world_.now - laptop.clear_since();
  if (world_.healed && clear > 3 * k_min) check_seen(laptop);
  else std::erase_if(answers_for_, [&](const auto& entry) { return entry.first.first == laptop.index(); });
  if (world_.healed) look_at_forgotten(laptop);
  if (world_.healed && clear > 3 * k_min) {
    check_holds(laptop);
    check_room(laptop);
  }
  note_answers(laptop);
  for (const auto& [id, job] : laptop.controller()->book().all()) {
    check_silence(laptop, *job);
    if (Nanos& next = next_look_at_kept_[id]; world_.now >= next) {
      next = world_.now + k_look_at_kept;
      check_kept(laptop, job->id());
    }
    // What an attempt has used that was given up is known when it is given up.
    Nanos& waits = waits_since_.try_emplace(id, world_.now).first->second;
    if (job->state().attempt() != nullptr) waits = world_.now;
    if (job->unsure) continue;
    check_image_waits(laptop, *job);
    if (clear < k_heed) continue;
    check_hangs(laptop, *job);
    check_limits(laptop, *job);
    check_told(laptop, *job);
    check_emptied(laptop, *job);
    check_urgent(laptop, *job);
  }
}

// It is not given up although its time is over.
void Truth::check_silence(Laptop& laptop, const control::TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  if (job.unsure) unsure_at_[job.id().value] = world_.now;
  if (attempt == nullptr || job.unsure) return;
  const Nanos slack = 2 * world_.options.tick;
  const auto unsure = unsure_at_.find(job.id().value);
  // It may not be able to record it, or has read only just now what is recorded.
  // Each is looked at every two seconds.
  if (world_.now - std::max(laptop.clear_since(), unsure == unsure_at_.end() ? 0 : unsure->second) < slack + 2 * k_s) return;
  for (const job::Member& member : attempt->members) {
    if (member.part == job::Part::collected) continue;
    const control::FleetHost* host = laptop.controller()->fleet().find(member.host);
    if (host == nullptr) continue;
    const Duration silent = host->monitor->silence().counted();
    if (silent > job.state().policy.lost_after + Duration{slack})
      broken("L1", job.id(), "still waits for its host after " + format_duration(silent) + " of silence");
  }
}

void Truth::note_answers(Laptop& laptop) {
  for (const auto& host : world_.hosts) {
    const control::FleetHost* known = laptop.controller()->fleet().find(host->name());
    const std::optional<BootTime> last = known == nullptr ? std::nullopt : known->monitor->last_answer();
    const std::pair key{laptop.index(), host_index(host->name())};
    // What it says of jobs comes over the monitor's connection; one that is used for files shows that it is alive.
    const bool is_asked = known != nullptr && known->is_up();
    if (is_asked && last && laptop.boot() - *last < std::chrono::seconds{5}) answers_since_.emplace(key, world_.now);
    else answers_since_.erase(key);
  }
}

// Else its host may have ended it at the limit, as it was told to, or before: nobody here knows yet. One that waits
// uses nothing, and is ended at the next look.
bool Truth::has_answered_for_long(Laptop& laptop, const job::State& state) const {
  const job::Attempt* attempt = state.attempt();
  return attempt != nullptr &&
         std::all_of(attempt->members.begin(), attempt->members.end(), [&](const job::Member& member) {
           const auto since = answers_since_.find({laptop.index(), host_index(member.host)});
           return since != answers_since_.end() && world_.now - since->second > k_heed;
         });
}

// Judged by the registry's own count, which a wall clock that is set would spoil.
// What has run is counted by the laptop's wall clock.
bool Truth::clock_is_set() const {
  const auto& faults = world_.options.faults;
  return std::any_of(faults.begin(), faults.end(),
                     [](const Fault& one) { return one.kind == FaultKind::laptop_clock_jump; });
}

void Truth::check_limits(Laptop& laptop, const control::TrackedJob& job) {
  const job::Spec& spec = job.spec();
  const bool any = spec.budget_total || spec.max_duration || (spec.deadline && spec.deadline->hard);
  const bool just_resumed = world_.now - shadow(job.id()).resumed_at < k_heed;
  const bool may_rest = world_.now - laptop.stalled_at < k_min + k_heed;
  if (!any || may_rest || clock_is_set() || just_resumed || is_stopping(job.state())) return;
  // One that waits uses nothing of its own, and is looked at like any other.
  if (job.state().attempt() != nullptr && !has_answered_for_long(laptop, job.state())) return;
  if (job.state().attempt() == nullptr && job.in<job::Waiting>() == nullptr) return;
  if (job.state().attempt() == nullptr && world_.now - waits_since_.at(job.id().value) < k_heed) return;
  const WallTime before{laptop.wall().ms - k_heed / k_ms};
  const Result<registry::Spent> spent = laptop.records()->spent(job.id(), before);
  if (!spent) return;
  if (spec.budget_total && spent->usd > *spec.budget_total)
    broken("W3", job.id(), "goes on, though its budget is used up");
  if (spec.max_duration && spent->ran > *spec.max_duration)
    broken("W3", job.id(), "goes on, though it has run as long as it may");
  if (spec.deadline && spec.deadline->hard && before > job::moment_of(*spec.deadline, job.row.submitted_at))
    broken("W3", job.id(), "goes on after its deadline");
}

// A host that could take it: it answers, is not to be emptied itself, and nothing of anybody is there. A borrowed one is
// given no image by its tag.
bool Truth::could_take(Laptop& laptop, int host, const job::Spec& spec) const {
  const Host& there = *world_.hosts[static_cast<std::size_t>(host)];
  if (host < world_.options.lent && !job::images_without_digest(spec).empty()) return false;
  const control::FleetHost* known = laptop.controller()->fleet().find(there.name());
  // It may have been given to another job a moment ago.
  const bool is_given = std::ranges::any_of(laptop.controller()->book().all(), [&](const auto& entry) {
    const job::Attempt* its = entry.second->state().attempt();
    return its != nullptr && its->on(there.name()) != nullptr && entry.second->template in<job::Collecting>() == nullptr;
  });
  return !is_given && known != nullptr && known->is_up() && host != world_.options.liar && !known->provider.drained &&
         there.is_unused() && gpus_of(spec) <= world_.options.gpus_per_host &&
         known->monitor->silence().judge(spec.recovery.lost_after) == job::Liveness::answering;
}

void Truth::check_emptied(Laptop& laptop, const control::TrackedJob& job) {
  const auto* running = job.in<job::Running>();
  const bool judged = running != nullptr && world_.healed == false && family(index(job.id())) == index(job.id()) &&
                      job.spec().twins == 1 && job.spec().num_nodes == 1 && world_.options.prices.empty();
  if (!judged) return;
  for (const job::Member& member : running->attempt.members) {
    const int host = host_index(member.host);
    const auto since = emptied_since_.find({laptop.index(), host});
    if (since == emptied_since_.end()) continue;
    const control::FleetHost* there = laptop.controller()->fleet().find(member.host);
    bool free = false;
    for (int other = 0; other < world_.options.hosts; ++other)
      free = free || (other != host && could_take(laptop, other, job.spec()));
    Nanos& stays = stays_since_.try_emplace(job.id().value, world_.now).first->second;
    if (!free || there == nullptr || !there->is_up() || there->monitor->silence().counted() > Duration::zero())
      stays = world_.now;
    stays = std::max({stays, since->second, laptop.clear_since()});
    if (world_.now - stays > there->provider.drain_within.count() + k_heed + k_min)
      broken("W1", job.id(), "stays on " + member.host.value + ", which is to be emptied");
    return;
  }
  stays_since_.erase(job.id().value);
}

// Once all is well: who waits for room while less urgent ones have it gets it after their next checkpoints, or the end of
// their tasks, unless a gang whose turn comes before its own waits for the same room.
void Truth::check_urgent(Laptop& laptop, const control::TrackedJob& job) {
  const auto* waiting = job.in<job::Waiting>();
  bool less_urgent = false;
  if (world_.healed && waiting != nullptr && job::images_without_digest(job.spec()).empty() && !job.spec().service && waiting->why == "waiting_for_provider" && job.spec().twins == 1 &&
      job.spec().num_nodes == 1 && job.spec().twin_of.value.empty() && !is_behind_a_gang(laptop, job))
    for (const auto& [id, other] : laptop.controller()->book().all()) {
      const auto* running = other->in<job::Running>();
      if (running == nullptr || other->spec().num_nodes > 1 || other->spec().priority >= job.spec().priority) continue;
      if (gpus_of(other->spec()) < gpus_of(job.spec())) continue;  // its end would not be enough
      if (other->spec().checkpoint.interval == job::CheckpointPolicy::Interval::off) continue;  // it saves nothing, or its user forbids it
      if (other->runs_spared) continue;
      // It saves nothing while it stands still; where that goes on, H2 looks at it.
      const Payload* program = find(host_index(running->attempt.lead().host), index(other->id()), running->attempt.epoch);
      if (program != nullptr && program->stands_since >= 0) continue;
      // It may fit there as things are, and waits all the same for a host that has not failed it.
      const HostName& where = running->attempt.lead().host;
      if (std::ranges::any_of(job.state().avoided, [&](const auto& one) { return one.host == where; })) continue;
      const Host& there = *world_.hosts[static_cast<std::size_t>(host_index(running->attempt.lead().host))];
      less_urgent = less_urgent || there.name() != HostName{"host" + std::to_string(world_.options.liar)};
    }
  if (!less_urgent) return void(crowded_since_.erase(job.id().value));
  const Nanos since = crowded_since_.try_emplace(job.id().value, world_.now).first->second;
  const Options& o = world_.options;
  const Nanos tasks_end = o.bags > 0 ? 3 * k_min : 0;  // the time that they get, and that in which what still runs is stopped
  if (world_.now - since > 4 * (o.save_every + o.transfer_time + o.start_time) + tasks_end + 3 * k_min)
    broken("W4", job.id(), "waits, and less urgent jobs run");
}

}  // namespace gridctl::sim
