// SPDX-License-Identifier: Apache-2.0
#include "control/follow/mover.hpp"

#include <algorithm>

#include "job/last_step.hpp"

namespace gridctl::control {

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
