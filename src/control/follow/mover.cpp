// SPDX-License-Identifier: Apache-2.0
#include "control/follow/mover.hpp"

#include <algorithm>

#include "job/last_step.hpp"

namespace gridctl::control {

namespace {

constexpr const char* k_why = "drained";

std::string summary_of(const MoveFacts& facts) {
  return facts.gang ? sched::summary(*facts.gang, facts.wish) : sched::summary(facts.decision);
}

std::string goes_to(const MoveFacts& facts) {
  if (!facts.gang) return facts.decision.placement->host.value;
  return sched::describe(*facts.gang->plan);
}

}  // namespace

bool may_move(const job::State& state, bool drained) {
  if (std::holds_alternative<job::Launching>(state.phase)) return drained;
  const auto* running = std::get_if<job::Running>(&state.phase);
  return running != nullptr && (drained || running->move || state.reason == job::k_move_blocked);
}

std::optional<job::Event> judge_move(const job::State& state, const MoveFacts& facts, WallTime now) {
  const job::Attempt* attempt = state.attempt();
  if (attempt == nullptr || !may_move(state, !facts.drained.value.empty())) return std::nullopt;
  const Epoch epoch = attempt->epoch;
  const auto* running = std::get_if<job::Running>(&state.phase);
  const bool possible = facts.possible();
  const bool drained = !facts.drained.value.empty();
  if (!drained && !(running->move && facts.wished)) return job::MoveWithdrawn{epoch};
  if (!facts.answers) return std::nullopt;
  const auto leave = [&](std::uint64_t after, Duration patience) {
    return job::MoveRequested{epoch, k_why, after, patience, {}, 0, facts.drained, facts.by_tasks};
  };
  if (running == nullptr) return possible ? std::optional<job::Event>{leave(0, {})} : std::nullopt;
  if (!possible && !(running->move && facts.to_anywhere && !drained)) {
    const std::string summary = summary_of(facts);
    const bool told = state.reason == job::k_move_blocked && state.reason_text.ends_with(summary);
    return told ? std::nullopt : std::optional<job::Event>{job::MoveBlocked{epoch, summary}};
  }
  if (!running->move) return leave(facts.newest_there, facts.patience);
  if (facts.by_tasks && facts.tasks_ended) return job::MoveDue{epoch, "the tasks that it ran have ended"};
  // Unless the host has to be emptied, a job moves only with all its work saved: lost work would be missing at the end.
  // Tasks of a bag that are stopped are run again by others.
  const bool may_lose = drained || (facts.by_tasks && facts.patience > Duration::zero());
  const bool impatient = may_lose && now - running->move->since >= facts.patience;
  if (impatient && facts.by_tasks)
    return job::MoveDue{epoch, "the time for its tasks is over: those that still run go back to the bag, and that is no failure"};
  if (running->move->saved || impatient) return job::MoveDue{epoch};
  return std::nullopt;
}

std::vector<std::string> explain_move(const job::State& state, const MoveFacts& facts) {
  const job::Attempt* attempt = state.attempt();
  std::vector<std::string> lines;
  if (attempt == nullptr) return lines;
  const auto* running = std::get_if<job::Running>(&state.phase);
  const std::string why = running != nullptr && running->move ? running->move->why : k_why;
  const std::string host = running != nullptr && running->move && !running->move->host.value.empty()
                               ? running->move->host.value
                               : attempt->lead().host.value;
  lines.push_back((why == k_why ? host + " is being emptied" : job::leaving_in_words({host}, why)) + ": " +
                  (facts.by_tasks && (facts.possible() || facts.to_anywhere)
                       ? "this worker gets no more tasks, leaves when those that it runs have ended, and then " +
                                            (facts.possible() ? "goes to " + goes_to(facts) : "waits for a host")
                   : facts.possible() ? "the job moves to " + goes_to(facts) + " when its next checkpoint is safe"
                                      : "the job stays until another host can run it"));
  for (std::string& line : facts.gang ? sched::explain(*facts.gang, facts.wish) : sched::explain(facts.decision))
    lines.push_back(std::move(line));
  return lines;
}

namespace {
constexpr Duration k_pause = std::chrono::seconds{1};  // between two looks at jobs that move
}

const FleetHost* Mover::drained_host(const TrackedJob& job) const {
  const job::Attempt* attempt = job.state().attempt();
  if (attempt == nullptr) return nullptr;
  for (const job::Member& member : attempt->members)
    if (const FleetHost* host = fleet_.find(member.host); host != nullptr && fleet_.is_drained(*host)) return host;
  return nullptr;
}

bool Mover::is_settled(const TrackedJob& job) const {
  const job::Attempt* attempt = job.state().attempt();
  return attempt != nullptr &&
         std::all_of(attempt->members.begin(), attempt->members.end(), [&](const job::Member& member) {
           const FleetHost* host = fleet_.find(member.host);
           return host != nullptr && host->is_up() && !fleet_.is_drained(*host);
         });
}

bool Mover::answers(const TrackedJob& job) const {
  const Duration lost_after = job.state().policy.lost_after;
  const job::Attempt& attempt = *job.state().attempt();
  return std::all_of(attempt.members.begin(), attempt.members.end(), [&](const job::Member& member) {
    const FleetHost* host = fleet_.find(member.host);
    return host != nullptr && host->is_up() && host->monitor->silence().judge(lost_after) == job::Liveness::answering;
  });
}

void Mover::tick(BootTime now) {
  if (now < next_) return;
  next_ = now + k_pause;
  book_.each_placed([&](TrackedJob& job) {
    if (job.unsure) return;
    // The promise is missing: the daemon started in the middle of the job's move.
    const bool unpromised = !job.state().moving().empty() && !placement_.is_promised(job.id());
    if (unpromised || may_move(job.state(), drained_host(job) != nullptr)) judge(job);
  });
}

void Mover::ask(const TrackedJob& job, const MoveWish& wish) {
  const auto* running = job.in<job::Running>();
  if (running == nullptr || running->move || job.unsure) return;
  const Epoch epoch = running->attempt.epoch;
  const JobId id = job.id();
  book_.apply(id, job::MoveRequested{
                      epoch, wish.why, attempts_.newest_there(job), wish.patience, wish.text, wish.failures_max, wish.host,
                      job::works_on_tasks(job.spec())});
  if (wish.at_once) book_.apply(id, job::MoveDue{epoch});
}

std::optional<MoveWish> Mover::wish_of(const TrackedJob& job) {
  const auto* running = job.in<job::Running>();
  if (running == nullptr || !running->move || concerns_ == nullptr) return std::nullopt;
  for (const auto& concern : *concerns_)
    if (concern->moves_for(running->move->why)) return concern->still_wished(job);
  return std::nullopt;
}

// Asks where the job would go. Returns false if that is not known now.
bool Mover::ask_where(const TrackedJob& job, MoveFacts& facts, std::optional<MoveWish>& wish) {
  const bool drained = !facts.drained.value.empty();
  if (job.spec().num_nodes > 1) {
    // The job's other members stay where they are, if that is best.
    const bool grows = wish && wish->grows;
    Result<GangOffer> offer =
        placement_.offer(job, placement_.question(job, {job.id().value}), wish && !grows ? wish->host : HostName{},
                         grows && job::forgives(*job.state().attempt(), world_.clock.wall()));
    if (!offer) return report(offer.error(), "while looking for a host to move a job to"), false;
    facts.gang = std::move(offer->decision);
    facts.wish = offer->wish;
    return true;
  }
  const FleetHost* here = fleet_.find(job.state().attempt()->lead().host);
  facts.decision = wish && wish->elsewhere ? *std::move(wish->elsewhere)
                                           : placement_.decide(job, placement_.question(job), drained ? nullptr : here);
  return true;
}

void Mover::judge(TrackedJob& job) {
  const FleetHost* drained = drained_host(job);
  MoveFacts facts;
  std::optional<MoveWish> wish;
  if (drained == nullptr) wish = wish_of(job);
  if (drained != nullptr) {
    facts.drained = drained->provider.name;
    facts.patience = drained->provider.drain_within;
  }
  facts.wished = wish.has_value();
  facts.to_anywhere = wish && wish->to_anywhere;
  if (wish) facts.patience = wish->patience;
  facts.by_tasks = job::works_on_tasks(job.spec());
  const auto* running = job.in<job::Running>();
  facts.tasks_ended = running != nullptr && running->move && job.idle_for_move == running->move->since;
  facts.answers = answers(job);
  facts.newest_there = attempts_.newest_there(job);
  if (!ask_where(job, facts, wish)) return;
  const std::optional<job::Event> next = judge_move(job.state(), facts, world_.clock.wall());
  const bool stays = next && std::holds_alternative<job::MoveWithdrawn>(*next);
  if (job.in<job::Running>() != nullptr)
    placement_.explain(job, stays ? std::vector{"placed on " + job.state().attempt()->where() + ": " +
                                                job.state().attempt()->placement_reason}
                                  : explain_move(job.state(), facts));
  if (next) book_.apply(job.id(), *next);
  // From the stop to the next placement, no other job gets that place.
  if (!job.state().moving().empty() && !placement_.is_promised(job.id()) && facts.possible())
    placement_.promise(job.id(), facts.gang ? GangOffer{*facts.gang, facts.wish}.members()
                                            : std::vector{member_of(*facts.decision.placement)});
}

}  // namespace gridctl::control
