// SPDX-License-Identifier: Apache-2.0
#include "control/follow/placement.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/follow/lent_hosts.hpp"
#include "control/follow/pauses.hpp"
#include "control/follow/tuning.hpp"
#include "control/measure/bench.hpp"
#include "control/measure/network_record.hpp"
#include "sched/host_end.hpp"

namespace gridctl::control {

namespace {
constexpr double k_cores_of_a_gpu = 8;
}

double load_of(const job::Resources& wanted) {
  int gpus = 0;
  for (const job::GpuRequest& request : wanted.gpus) gpus = std::max(gpus, request.count_min);
  return std::max(static_cast<double>(gpus), wanted.cpus / k_cores_of_a_gpu);
}

double load_of(const job::Member& held) {
  return std::max(static_cast<double>(held.gpu_uuids.size()), held.cpus / k_cores_of_a_gpu);
}

std::vector<std::size_t> in_turn(const std::vector<Waits>& waiting, std::map<std::string, double> held) {
  std::map<int, std::map<std::string, std::deque<std::size_t>>, std::greater<>> queues;  // by priority and owner
  for (std::size_t i = 0; i < waiting.size(); ++i) queues[waiting[i].priority][waiting[i].owner].push_back(i);
  std::vector<std::size_t> turns;
  for (auto& [priority, owners] : queues) {
    for (auto& [owner, jobs] : owners)
      std::stable_sort(jobs.begin(), jobs.end(),
                       [&](std::size_t a, std::size_t b) { return waiting[a].submitted_at < waiting[b].submitted_at; });
    while (!owners.empty()) {
      const auto next = std::min_element(owners.begin(), owners.end(), [&](const auto& a, const auto& b) {
        const double a_holds = held[a.first], b_holds = held[b.first];
        const WallTime a_since = waiting[a.second.front()].submitted_at,
                       b_since = waiting[b.second.front()].submitted_at;
        return a_holds != b_holds ? a_holds < b_holds : a_since < b_since;
      });
      const std::size_t job = next->second.front();
      turns.push_back(job);
      held[next->first] += waiting[job].load;
      next->second.pop_front();
      if (next->second.empty()) owners.erase(next);
    }
  }
  return turns;
}

namespace {

constexpr Duration k_first_contact = std::chrono::milliseconds{200};  // placing looks so often for the first try of all
constexpr Duration k_first_contact_max = std::chrono::seconds{3};     // hosts, but does not wait longer for a dead one
constexpr Duration k_wake_pause = std::chrono::seconds{1};            // between two rounds of asking for all that wait
// With thousands of waiting jobs, each is asked less often, so that hosts are still served in the meantime.
constexpr Duration k_wake_share = std::chrono::milliseconds{200};  // of such a round; the rest have the next one
constexpr Duration k_ask_share = std::chrono::milliseconds{20};    // a job's, of the pause until it is asked for again

}  // namespace

Placement::Placement(const World& world, JobBook& book, Fleet& fleet)
    : world_(world), book_(book), fleet_(fleet), began_(world_.clock.boot()) {
  book_.listen(*this);
}

void Placement::changed(const TrackedJob& job, const job::State&) {
  if (job.in<job::Waiting>() == nullptr) {
    Wait& mine = wait(job.id());
    mine.timer.reset();
    mine.reserved.reset();  // it has found a place, there or elsewhere
    mine.turn.reset();
    if (job.state().moving().empty()) mine.promised.reset();
  } else if (job.waits_for_room() && !was_asked(job)) {
    all_asked_at_.reset();
  }
  note_claim(job.id());
}

void Placement::note_claim(const JobId& id) {
  const TrackedJob* job = book_.find(id);
  const auto found = waits_.find(id.value);
  const bool has = (job != nullptr && job->state().attempt() != nullptr) ||
                   (found != waits_.end() && (found->second.promised || found->second.reserved || (found->second.turn && found->second.turn->binding)));
  if (has) claiming_.insert(id.value);
  else claiming_.erase(id.value);
}

void Placement::tick(BootTime now) { wake_waiting(now); }

bool Placement::is_promised(const JobId& id) const {
  const auto found = waits_.find(id.value);
  return found != waits_.end() && found->second.promised;
}

std::vector<HostName> Placement::hosts_of(const TrackedJob& job) const {
  std::vector<HostName> hosts;
  if (const job::Attempt* attempt = job.state().attempt())
    for (const job::Member& member : attempt->members) hosts.push_back(member.host);
  if (const auto found = waits_.find(job.id().value); found != waits_.end())
    for (const auto& kept : {found->second.promised, found->second.reserved})
      if (kept)
        for (const job::Member& member : *kept) hosts.push_back(member.host);
  return hosts;
}

// --- The question ----------------------------------------------------------------------------------------------------

// This job comes after the other, and would not finish before the other's turn.
bool Placement::gives_way(const TrackedJob& asking, const TrackedJob& to, const Turn& turn) const {
  if (!turn.binding) return false;
  const auto rank = [](const TrackedJob& job) {
    return std::tuple(-job.spec().priority, job.row.submitted_at, job.id().value);
  };
  if (!(rank(to) < rank(asking))) return false;
  const std::optional<Duration>& most = asking.spec().max_duration;
  return !(most && turn.from && world_.clock.boot() + *most <= *turn.from);
}

std::vector<sched::HostFacts> Placement::facts(const TrackedJob& asking, const std::set<std::string>& gone) const {
  std::vector<Claim> claims;
  for (const std::string& id : claiming_) {
    const TrackedJob* job = std::as_const(book_).find({id});
    if (job == nullptr) continue;
    // An ended job holds nothing, even while its last files are fetched.
    const job::Attempt* attempt = job->state().attempt();
    const bool ended = job->in<job::Collecting>() != nullptr || gone.contains(id);
    // A paused job holds what the ledger of its host says, and no GPU; one that stands aside keeps its GPU from later
    // jobs.
    if (attempt != nullptr && job->paused && !(job->aside && asking.spec().priority <= job->spec().priority)) continue;
    if (attempt != nullptr)
      for (const job::Member& member : attempt->members)
        claims.push_back({job->id(), attempt->epoch, ended || member.part >= job::Part::ended ? nullptr : &member});
    const auto kept = job == &asking ? waits_.end() : waits_.find(id);
    if (kept == waits_.end()) continue;
    for (const auto* members : {&kept->second.promised, &kept->second.reserved})
      if (*members)
        for (const job::Member& member : **members) claims.push_back({job->id(), {}, &member});
    if (const std::optional<Turn>& turn = kept->second.turn; turn && !kept->second.reserved && gives_way(asking, *job, *turn))
      for (const job::Member& member : turn->members) claims.push_back({job->id(), {}, &member});
  }
  std::vector<sched::HostFacts> all = facts_now(fleet_.now(asking.spec().recovery.lost_after), claims);
  fleet_.judge(all);
  for (sched::HostFacts& host : all) tell_time_left(host, world_.clock.wall());
  return all;
}

sched::JobKnowledge Placement::knowledge(const TrackedJob& job, std::vector<sched::HostFacts>& hosts) {
  report(apply_bench(world_.records, hosts), "while placing");
  const job::Constraints& wanted = job.spec().constraints;
  const bool by_place = !wanted.region_in.empty() || !wanted.region_not.empty() || !wanted.query.empty();
  if (by_place) report(apply_countries(world_.records, hosts), "while placing");
  report(apply_pauses(world_.records, hosts), "while placing");
  const Result<sched::JobKnowledge> told = knowledge_of(world_.records, job.row, hosts, world_.clock.wall());
  report(told, "while placing");
  sched::JobKnowledge known = told ? *told : sched::knowledge_of(job.spec());
  report(apply_links(world_.records, job.spec(), known, hosts), "while placing");
  return known;
}

Question Placement::question(const TrackedJob& job, const std::set<std::string>& gone) {
  Question question{job.spec(), facts(job, gone), {}};
  const WallTime now = world_.clock.wall();
  for (sched::HostFacts& host : question.hosts) host.resting = job::why_resting(job.state().setbacks, host.name, now);
  question.known = knowledge(job, question.hosts);
  if (concerns_ != nullptr)
    for (const auto& concern : *concerns_) concern->shape(job, question);
  return question;
}

sched::Decision Placement::decide(const TrackedJob& job, Question question, const FleetHost* leaving) {
  if (leaving != nullptr)
    std::erase_if(question.hosts, [&](const sched::HostFacts& facts) {
      const FleetHost* host = fleet_.find(facts.name);
      return host != nullptr && fleet_.same_provider(*host, *leaving);
    });
  return sched::place(question.spec, question.hosts, job.state().avoided, question.known);
}

// --- Placing ---------------------------------------------------------------------------------------------------------

void Placement::place_after(const TrackedJob& job, Duration delay) {
  Wait& mine = wait(job.id());
  if (mine.timer != nullptr) return;
  const bool asked_before = mine.asked_at != 0 && delay > Duration::zero();
  const auto waiting = static_cast<std::int64_t>(book_.size());
  mine.timer =
      world_.run.after(asked_before ? std::max<Duration>(delay, waiting * k_ask_share) : delay, [this, id = job.id()] {
        if (TrackedJob* due = book_.find(id)) place(*due);
      });
  if (job.waits_for_room() && !was_asked(job)) all_asked_at_.reset();
}

void Placement::place_now(const TrackedJob& job) {
  wait(job.id()).timer.reset();
  place_after(job, Duration::zero());
}

// A job is placed only when it is known who holds which resources, and where each twin is.
void Placement::place_soon(const TrackedJob& job) {
  wait(job.id()).timer = world_.run.after(k_first_contact, [this, id = job.id()] {
    if (TrackedJob* due = book_.find(id)) place(*due);
  });
}

void Placement::place(TrackedJob& job) {
  Wait& mine = wait(job.id());
  const os::Executor::Timer self = std::move(mine.timer);
  mine.timer.reset();
  if (job.unsure || job.in<job::Waiting>() == nullptr) return;
  const bool knows_hosts = fleet_.all_tried() || world_.clock.boot() - began_ > k_first_contact_max;
  if (!knows_hosts || !book_.is_certain()) return place_soon(job);
  mine.asked_at = fleet_.capacity();
  ask_those_before(job);
  if (!book_.is_certain()) return place_soon(job);  // the placement of an earlier job may have failed to commit
  if (is_held(job)) return;
  Question asked = question(job);
  if (job.spec().num_nodes > 1) return place_gang(job, asked);
  if (asked.preference) {
    const FleetHost* gone = fleet_.find(asked.preference->as_if_gone);
    sched::Decision preferred = decide(job, asked, gone);
    if (gone != nullptr && preferred.placement && preferred.placement->host == asked.preference->host) {
      preferred.placement->reason += "; " + asked.preference->because;
      return placed(job, asked, preferred);
    }
  }
  placed(job, asked, decide(job, asked));
}

bool Placement::is_held(TrackedJob& job) {
  if (concerns_ == nullptr) return false;
  for (const auto& concern : *concerns_) {
    const std::optional<Held> held = concern->holds(job);
    if (!held) continue;
    const std::string text = held->why + (held->until ? "; until " + format_rfc3339(*held->until) : "");
    explain(job, {text});
    wait(job.id()).promised.reset();
    note_claim(job.id());
    book_.apply(job.id(), job::NotPlaced{true, text, true});
    return true;
  }
  return false;
}

void Placement::placed(TrackedJob& job, const Question& question, const sched::Decision& decision) {
  std::vector<std::string> lines = sched::explain(decision);
  if (!decision.placement)
    return not_placed(job, question, decision.could_ever_fit, sched::summary(decision), std::move(lines));
  const sched::Estimate& estimate = decision.placement->estimate;
  std::optional<job::Expected> expected;
  const bool stays = decision.placement->refuge.value.empty();
  if (question.known.work_known && stays && !estimate.is_never())
    expected = job::Expected{estimate.takes(), estimate.cost()};
  begin(job, {member_of(*decision.placement)}, decision.placement->reason, expected, std::move(lines));
  if (const std::string late = sched::late_warning(decision, question.known); !late.empty()) tell_risk(job, late);
}

void Placement::not_placed(TrackedJob& job, const Question& question, bool could_ever_fit, const std::string& summary,
                           std::vector<std::string> lines) {
  if (!question.held.empty()) lines.insert(lines.begin(), question.held);
  if (const std::optional<Turn>& turn = wait(job.id()).turn)
    lines.insert(lines.begin(), turn->lines.begin(), turn->lines.end());
  explain(job, std::move(lines));
  wait(job.id()).promised.reset();
  note_claim(job.id());
  if (!question.held.empty()) return book_.apply(job.id(), job::NotPlaced{true, question.held});  // the month will end
  book_.apply(job.id(), job::NotPlaced{could_ever_fit, summary});
}

void Placement::begin(TrackedJob& job, std::vector<job::Member> members, const std::string& reason,
                      const std::optional<job::Expected>& expected, std::vector<std::string> lines) {
  Wait& mine = wait(job.id());
  mine.interval = tune(job, members.front());
  mine.tuned = true;
  if (!mine.interval.reason.empty()) lines.push_back("suggested checkpoint interval: " + mine.interval.reason);
  explain(job, std::move(lines));
  book_.apply(job.id(), job::Placed{std::move(members), reason, expected});
  tell_compulsory(job);
}

// Says once per job that `interval: off` does not hold where it was placed.
void Placement::tell_compulsory(const TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr || interval_now(fleet_, job) == job.spec().checkpoint.interval) return;
  const Result<std::vector<registry::AttemptRecord>> history = world_.records.attempts(job.id());
  if (!history) return report(history.error(), "while looking at former attempts");
  for (const registry::AttemptRecord& former : *history)
    if (former.number < attempt->number && is_lent_host(fleet_, former.provider)) return;
  std::vector<std::string> lent;
  for (const job::Member& member : attempt->members)
    if (is_lent_host(fleet_, member.host)) lent.push_back(member.host.value);
  book_.note(job.id(), {"checkpoints_compulsory",
                        "checkpoint.interval: off does not hold on borrowed hosts: checkpoints of this job are taken on " +
                            join(lent, ", ") + " as with interval: auto",
                        attempt->epoch, attempt->lead().host});
}

void Placement::tell_risk(const TrackedJob& job, const std::string& text) {
  const job::Attempt* attempt = job.state().attempt();
  Wait& mine = wait(job.id());
  if (attempt == nullptr || mine.risk_told == attempt->epoch) return;
  mine.risk_told = attempt->epoch;
  book_.note(job.id(), {"deadline_at_risk", text, attempt->epoch, attempt->lead().host});
}

void Placement::explain(const TrackedJob& job, std::vector<std::string> lines) {
  Wait& mine = wait(job.id());
  if (lines == mine.explained) return;
  const Result<void> saved = world_.records.save_explanation(job.id(), lines);
  if (!saved) return report(saved.error(), "while saving an explanation");
  mine.explained = std::move(lines);
}

// --- Checkpoint intervals --------------------------------------------------------------------------------------------

// Returns how often the job should save there, from the cost of its checkpoints so far and the failure rate of that
// host.
sched::Interval Placement::tune(const TrackedJob& job, const job::Member& member) {
  const job::Attempt* attempt = job.state().attempt();
  const bool lent = is_lent_host(fleet_, member.host) || is_on_lent(fleet_, attempt);
  if (job::interval_on(job.spec(), lent) != job::CheckpointPolicy::Interval::automatic) return {};
  const Result<std::vector<registry::Checkpoint>> saved = world_.records.checkpoints(job.id());
  if (!saved) report(saved.error(), "while tuning checkpoints");
  const FleetHost* host = fleet_.find(member.host);
  const registry::Provider none;
  const registry::Provider& provider = host == nullptr ? none : host->provider;
  const sched::CheckpointCost cost =
      measured_cost(saved ? *saved : std::vector<registry::Checkpoint>{}, provider, job.spec().recovery.lost_after);
  const double rate = fleet_.reliability().rate_per_hour(member.host, provider.host_class, member.gpu_uuids);
  sched::Interval tuned = sched::checkpoint_interval(cost, rate, wait(job.id()).interval.every);
  const std::optional<WallTime> ends = host == nullptr ? std::nullopt : host->ends_at();
  if (!ends) return tuned;
  return sched::before_end(std::move(tuned), *ends - world_.clock.wall() - sched::lead_before_end(cost));
}

sched::Interval Placement::interval_of(const TrackedJob& job) {
  Wait& mine = wait(job.id());
  const job::Attempt* attempt = job.state().attempt();
  if (!std::exchange(mine.tuned, mine.tuned || attempt != nullptr) && attempt != nullptr)
    mine.interval = tune(job, attempt->lead());  // placed by a daemon before us
  return mine.interval;
}

// The host gets it with the next poll.
void Placement::retune(const TrackedJob& job) {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr || interval_now(fleet_, job) != job::CheckpointPolicy::Interval::automatic) return;
  Wait& mine = wait(job.id());
  sched::Interval tuned = tune(job, attempt->lead());
  const bool is_news = tuned.every != mine.interval.every;
  mine.interval = std::move(tuned);
  mine.tuned = true;
  if (is_news)
    book_.note(job.id(),
               {"interval_tuned", "suggested checkpoint interval: " + mine.interval.reason, attempt->epoch, attempt->lead().host});
}

// --- Turns -----------------------------------------------------------------------------------------------------------

std::vector<TrackedJob*> Placement::queue() {
  std::vector<TrackedJob*> waiting;
  std::vector<Waits> wishes;
  std::map<std::string, double> held;
  for (const auto& [id, job] : book_.all()) {
    const job::Spec& spec = job->spec();
    if (const job::Attempt* attempt = job->state().attempt())
      for (const job::Member& member : attempt->members) held[spec.owner] += load_of(member);
    if (job->in<job::Waiting>() == nullptr) continue;
    waiting.push_back(job.get());
    wishes.push_back({spec.priority, spec.owner, job->row.submitted_at, load_of(spec.resources)});
  }
  std::vector<TrackedJob*> queue;
  for (const std::size_t next : in_turn(wishes, std::move(held))) queue.push_back(waiting[next]);
  return queue;
}

// Newly free resources go to earlier jobs first. Ordering thousands of jobs is expensive, so this checks whether all
// waiting jobs have the same owner and priority; those are asked in time anyway.
void Placement::ask_those_before(const TrackedJob& than) {
  if (asks_in_turn_ || all_asked_at_ == fleet_.capacity()) return;
  if (std::none_of(book_.all().begin(), book_.all().end(), [&](const auto& entry) { return is_due(*entry.second); })) {
    all_asked_at_ = fleet_.capacity();
    return;
  }
  const bool needed = std::any_of(book_.all().begin(), book_.all().end(), [&](const auto& entry) {
    const job::Spec& spec = entry.second->spec();
    const bool others = spec.priority > than.spec().priority ||
                        (spec.priority == than.spec().priority && spec.owner != than.spec().owner);
    return others && is_due(*entry.second);
  });
  if (!needed) return;
  asks_in_turn_ = true;
  for (TrackedJob* job : queue()) {
    if (job == &than) break;
    if (is_due(*job)) place(*job);
  }
  asks_in_turn_ = false;
}

bool Placement::was_asked(const TrackedJob& job) const {
  const auto found = waits_.find(job.id().value);
  return found != waits_.end() && found->second.asked_at == fleet_.capacity();
}

bool Placement::is_due(const TrackedJob& job) const {
  if (!job.waits_for_room() || was_asked(job)) return false;
  const auto found = waits_.find(job.id().value);
  return found != waits_.end() && found->second.timer != nullptr;
}

// Asks at once for jobs that wait for room. Jobs in a backoff are left alone.
void Placement::wake_waiting(BootTime now) {
  const std::uint64_t capacity = fleet_.capacity();
  if (woken_at_ == capacity || now < next_wake_) return;
  next_wake_ = now + k_wake_pause;
  asks_in_turn_ = true;
  bool all = true;
  for (TrackedJob* job : queue()) {
    const auto* waiting = job->in<job::Waiting>();
    const Wait& mine = wait(job->id());
    if (waiting == nullptr || mine.timer == nullptr) continue;
    const bool for_room = waiting->why == job::k_waits_for_provider || waiting->for_room;
    if (!for_room || mine.asked_at == capacity) continue;
    place(*job);
    all = world_.clock.boot() - now < k_wake_share;
    if (!all) break;  // the rest have the next round
  }
  asks_in_turn_ = false;
  if (all) woken_at_ = capacity;
}

}  // namespace gridctl::control
