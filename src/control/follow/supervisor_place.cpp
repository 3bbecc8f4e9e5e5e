// SPDX-License-Identifier: Apache-2.0
// Where jobs go: placing those that wait, moving those whose host is to be emptied.
#include <algorithm>
#include <utility>

#include "control/fleet/free_capacity.hpp"
#include "control/fleet/host_facts.hpp"
#include "control/follow/following.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/follow/moves.hpp"
#include "control/follow/supervisor.hpp"
#include "control/follow/tuning.hpp"
#include "control/measure/bench.hpp"
#include "control/reach/pace.hpp"
#include "os/log.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_first_contact = std::chrono::milliseconds{200};  // placing looks so often for the first try of all
constexpr Duration k_first_contact_max = std::chrono::seconds{3};     // hosts, but does not wait longer for a dead one
constexpr Duration k_moves_pause = std::chrono::seconds{1};  // between two looks at jobs on hosts to be emptied
constexpr Duration k_limits_pause = std::chrono::seconds{1};
constexpr Duration k_wake_pause = std::chrono::seconds{1};  // between two rounds of asking for all that wait
// Of thousands that wait each is asked for more seldom, so that hosts are listened to meanwhile.
constexpr Duration k_wake_share = std::chrono::milliseconds{200};  // of such a round; the rest have the next one
constexpr Duration k_ask_share = std::chrono::milliseconds{20};    // a job's, of the pause until it is asked for again
}  // namespace

std::vector<sched::HostFacts> Supervisor::host_facts(const Following& asking, Duration lost_after,
                                                     const std::set<std::string>& gone) const {
  std::vector<HostNow> now;
  for (const auto& [name, host] : hosts_) {
    HostNow one;
    one.provider = &host->provider;
    one.boot_id = host->boot_id;
    one.held = host->held ? &*host->held : nullptr;
    one.full = clock_.boot() < host->busy_until;
    // As the job itself would judge it: the host that it has just left must not get it again. One that is late with an
    // answer (a busy one) is no suspect yet.
    one.reachable = host->monitor->is_up() && host->monitor->silence().judge(lost_after) <= job::Liveness::suspect;
    host->missed = host->missed || !one.reachable;
    now.push_back(one);
  }
  std::vector<Claim> claims;
  for (const auto& [id, job] : jobs_) {
    // What has ended holds nothing any more, also while its last files are fetched.
    const job::Attempt* attempt = job->state.attempt();
    const bool ended = std::holds_alternative<job::Collecting>(job->state.phase) || gone.contains(id);
    if (attempt != nullptr)
      for (const job::Member& member : attempt->members)
        claims.push_back({job->state.id, attempt->epoch, ended ? nullptr : &member});
    if (job.get() == &asking) continue;
    for (const std::optional<job::Member>& kept : {job->promised, job->reserved})
      if (kept) claims.push_back({job->state.id, {}, &*kept});
  }
  std::vector<sched::HostFacts> all = facts_now(now, claims);
  for (sched::HostFacts& facts : all)
    apply_standing(facts, hosts_.at(facts.name.value)->health.standing, clock_.wall());
  for (sched::HostFacts& facts : all) reliability_.apply(facts);
  keep_apart(asking, all);
  return all;
}

// Where the job would go now.
sched::Decision Supervisor::decide(const Following& job, const registry::Job& row, const Host* leaving) {
  std::vector<sched::HostFacts> hosts = host_facts(job, row.spec.recovery.lost_after, {});
  const sched::JobKnowledge known = known_now(row, hosts);
  return decide(job, row.spec, known, std::move(hosts), leaving);
}

sched::JobKnowledge Supervisor::known_now(const registry::Job& row, std::vector<sched::HostFacts>& hosts) {
  if (const Result<void> benched = apply_bench(registry_, hosts); !benched) report(benched.error(), "while placing");
  const Result<sched::JobKnowledge> told = knowledge_of(registry_, row, hosts, clock_.wall());
  if (!told) report(told.error(), "while placing");
  sched::JobKnowledge known = told ? *told : sched::knowledge_of(row.spec);
  if (const Result<void> linked = apply_links(registry_, row.spec, known, hosts); !linked)
    report(linked.error(), "while placing");
  return known;
}

sched::Decision Supervisor::decide(const Following& job, const job::Spec& spec, const sched::JobKnowledge& known,
                                   std::vector<sched::HostFacts> hosts, const Host* leaving) {
  if (leaving != nullptr)
    std::erase_if(hosts, [&](const sched::HostFacts& facts) {
      const Host& host = *hosts_.at(facts.name.value);
      return &host == leaving ||
             is_same_provider({&host.provider, host.boot_id}, {&leaving->provider, leaving->boot_id});
    });
  return sched::place(spec, hosts, job.state.avoided, known);
}

// --- Placing ---------------------------------------------------------------------------------------------------------

void Supervisor::carry_out(const JobPtr& job, const job::Place& effect) {
  if (job->place_timer != nullptr) return;
  const bool asked_before = job->asked_at_room != 0 && effect.after > Duration::zero();
  const auto waiting = static_cast<std::int64_t>(jobs_.size());
  job->place_timer = loop_.after(asked_before ? std::max<Duration>(effect.after, waiting * k_ask_share) : effect.after,
                                 [this, job] { place(job); });
}

void Supervisor::place(const JobPtr& job) {
  job->place_timer.reset();
  if (job->unsure || !std::holds_alternative<job::Waiting>(job->state.phase)) return;
  const bool all_tried = clock_.boot() - started_at_ > k_first_contact_max ||
                         std::all_of(hosts_.begin(), hosts_.end(), [](const auto& entry) {
                           const Host& host = *entry.second;  // what is free there is known from its first answer on
                           return host.monitor->is_up() ? !host.boot_id.empty() : host.monitor->was_tried();
                         });
  if (!all_tried) {
    job->place_timer = loop_.after(k_first_contact, [this, job] { place(job); });
    return;
  }
  job->asked_at_room = room_;
  ask_those_before(*job);
  Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while placing");
  const std::string held = hold_to_budget(*job, row->spec);
  std::vector<sched::HostFacts> hosts = host_facts(*job, row->spec.recovery.lost_after, {});
  const sched::JobKnowledge known = known_now(*row, hosts);
  const std::optional<sched::Decision> to_standby = decide_for_standby(*job, *row);
  const sched::Decision decision = to_standby ? *to_standby : decide(*job, row->spec, known, std::move(hosts));
  if (!decision.placement) {
    std::vector<std::string> lines = sched::explain(decision);
    if (!held.empty()) lines.insert(lines.begin(), held);
    explain(job, std::move(lines));
    job->promised.reset();
    if (!held.empty()) return apply(job, job::NotPlaced{true, held});  // the month will end
    return apply(job, job::NotPlaced{decision.could_ever_fit, sched::summary(decision)});
  }
  const job::Member member = member_of(*decision.placement);
  job->interval = tune(*job, row->spec, member);
  std::vector<std::string> lines = sched::explain(decision);
  if (!job->interval.reason.empty()) lines.push_back("checkpoints " + job->interval.reason);
  explain(job, std::move(lines));
  job->doubt = {};
  const sched::Estimate& estimate = decision.placement->estimate;
  std::optional<job::Expected> expected;
  const bool stays = decision.placement->refuge.value.empty();
  if (known.work_known && stays && !estimate.is_never()) expected = job::Expected{estimate.takes(), estimate.cost()};
  apply(job, job::Placed{{member}, decision.placement->reason, expected});
  if (const std::string late = sched::late_warning(decision, known); !late.empty()) tell_risk(job, late);
}

// How often the job shall save there, from what its checkpoints have cost so far and how often that host fails.
sched::Interval Supervisor::tune(const Following& job, const job::Spec& spec, const job::Member& member) {
  if (spec.checkpoint.interval != job::CheckpointPolicy::Interval::automatic) return {};
  const Result<std::vector<registry::Checkpoint>> saved = registry_.checkpoints(job.state.id);
  if (!saved) report(saved.error(), "while tuning checkpoints");
  const auto host = hosts_.find(member.host.value);
  const registry::Provider none;
  const registry::Provider& provider = host == hosts_.end() ? none : host->second->provider;
  const sched::CheckpointCost cost =
      measured_cost(saved ? *saved : std::vector<registry::Checkpoint>{}, provider, spec.recovery.lost_after);
  return sched::checkpoint_interval(
      cost, reliability_.rate_per_hour(member.host, provider.host_class, member.gpu_uuids), job.interval.every);
}

// A new checkpoint is here, and with it a new measure of what one costs. The host hears of it with the next poll.
void Supervisor::retune(const JobPtr& job, const job::Spec& spec) {
  const job::Attempt* attempt = job->state.attempt();
  if (attempt == nullptr || spec.checkpoint.interval != job::CheckpointPolicy::Interval::automatic) return;
  sched::Interval tuned = tune(*job, spec, attempt->members.front());
  const bool is_news = tuned.every != job->interval.every;
  job->interval = std::move(tuned);
  if (!is_news) return;
  const Result<void> noted =
      registry_.note(job->state.id, clock_.wall(),
                     {"interval_tuned", "checkpoints " + job->interval.reason, attempt->epoch, attempt->host()});
  if (!noted) report(noted.error(), "while noting a new interval");
}

void Supervisor::explain(const JobPtr& job, std::vector<std::string> lines) {
  if (lines == job->explained) return;
  const Result<void> saved = registry_.save_explanation(job->state.id, lines);
  if (!saved) return report(saved.error(), "while saving an explanation");
  job->explained = std::move(lines);
}

void Supervisor::capacity_freed() {
  wake_wanted_ = true;
  ++room_;
}

// Asks at once for those that wait for room. Those that wait for the end of a backoff are left alone.
void Supervisor::wake_waiting(BootTime now) {
  if (!wake_wanted_ || now < next_wake_) return;
  wake_wanted_ = false;
  next_wake_ = now + k_wake_pause;
  for (const JobPtr& job : queue()) {
    const auto* waiting = std::get_if<job::Waiting>(&job->state.phase);
    if (waiting == nullptr || job->place_timer == nullptr) continue;
    const bool for_room = waiting->why == "waiting_for_provider" || waiting->why == "not_started";
    if (!for_room || job->asked_at_room == room_) continue;
    place(job);
    if (clock_.boot() - now < k_wake_share) continue;
    wake_wanted_ = true;
    return;
  }
}

// --- Moving ----------------------------------------------------------------------------------------------------------

void Supervisor::judge_moves(BootTime now) {
  if (now < next_moves_) return;
  next_moves_ = now + k_moves_pause;
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const job::Attempt* attempt = job->state.attempt();
    const auto host = attempt == nullptr ? hosts_.end() : hosts_.find(attempt->host().value);
    if (host == hosts_.end()) continue;
    const bool unpromised = !job->state.moving().empty() && !job->promised;  // we were started in the middle
    if (unpromised || may_move(job->state, is_drained(*host->second))) judge_move(job, *host->second);
  }
}

bool Supervisor::is_drained(const Host& host) const {
  return std::any_of(hosts_.begin(), hosts_.end(), [&](const auto& entry) {
    const Host& other = *entry.second;
    return other.provider.drained &&
           (&other == &host || is_same_provider({&other.provider, other.boot_id}, {&host.provider, host.boot_id}));
  });
}

void Supervisor::judge_limits(BootTime now) {
  if (now < next_limits_) return;
  next_limits_ = now + k_limits_pause;
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    if (!job->limits.any()) continue;
    if (auto late = judge_late(job->state, job->limits, clock_.wall())) apply(job, *std::move(late));
    const Result<registry::Spent> spent = registry_.spent(job->state.id, clock_.wall());
    if (!spent) {
      report(spent.error(), "while counting what a job has used");
      continue;
    }
    double price = job->state.price_per_hour();
    for (const auto& [other_id, other] : jobs_)
      if (other->replica_of == job->state.id) price += other->state.price_per_hour();
    registry::Spent used = job->spent.read(*spent, price, now);
    used.usd_per_hour = price;
    if (auto reached = control::judge_limits(job->state, job->limits, used, clock_.wall()))
      apply(job, *std::move(reached));
  }
}

void Supervisor::judge_move(const JobPtr& job, const Host& host) {
  const Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while looking for another host");
  const Epoch epoch = job->state.attempt()->epoch;
  MoveFacts facts;
  facts.drained = is_drained(host);
  facts.answers =
      host.monitor->is_up() && host.monitor->silence().judge(job->state.policy.lost_after) == job::Liveness::answering;
  facts.patience = host.provider.drain_within;
  facts.newest_there = std::max(job->saved[epoch.value], job->listed[epoch.value]);
  facts.in_time = job->limits.until && clock_.wall() < *job->limits.until;
  const auto* running = std::get_if<job::Running>(&job->state.phase);
  const bool for_less = running != nullptr && running->move && running->move->why == job::k_for_less;
  std::optional<Cheaper> cheaper;
  if (for_less && !facts.drained) cheaper = cheaper_than_here(*job, *row, host);
  facts.cheaper = cheaper && cheaper->why;
  facts.preempted = job->preempted;
  facts.decision = cheaper ? std::move(cheaper->elsewhere) : decide(*job, *row, facts.drained ? nullptr : &host);
  const std::optional<job::Happening> next = control::judge_move(job->state, facts, clock_.wall());
  const bool stays = next && std::holds_alternative<job::MoveWithdrawn>(*next);
  if (running != nullptr)
    explain(job, stays ? std::vector{"placed on " + job->state.attempt()->host().value + ": " +
                                     job->state.attempt()->placement_reason}
                       : explain_move(job->state, facts.decision));
  if (next) apply(job, *next);
  // From the stop to the next placement nobody else is given that place.
  if (!job->state.moving().empty() && !job->promised && facts.decision.placement)
    job->promised = member_of(*facts.decision.placement);
}

}  // namespace gridctl::control
