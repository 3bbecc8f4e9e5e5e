// SPDX-License-Identifier: Apache-2.0
#include "forecast/life.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "forecast/life_impl.hpp"

namespace gridctl::forecast {

namespace {
constexpr double k_stall_min = 0.01;  // as measured: nothing is free
constexpr double k_stopping = 1;      // seconds until a member of a broken gang is gone; job::k_gang_grace at most

template <class T>
const T* newest(const std::vector<job::Effect>& effects) {
  for (const job::Effect& effect : effects)
    if (const T* found = std::get_if<T>(&effect)) return found;
  return nullptr;
}

Duration duration_of(double seconds) {
  return std::chrono::nanoseconds{static_cast<std::int64_t>(std::llround(seconds * 1e9))};
}
}  // namespace

// Does everything that is newly due at once, or puts it into the queue.
void Life::apply(job::Event what, Nanos stamp) {
  job::Step step = job::step(state_, {wall(stamp), std::move(what)});
  state_ = std::move(step.state);
  if (const auto* done = std::get_if<job::Done>(&state_.phase)) {
    done_ = true;
    outcome_.finished = done->state == job::JobState::succeeded;
    return;
  }
  if (newest<job::Launch>(step.effects) != nullptr) launch();
  for (const job::Effect& effect : step.effects) {
    if (const auto* due = std::get_if<job::Collect>(&effect))
      after(ended_here_ ? pace_.upload : 0, Kind::collected, on_[static_cast<std::size_t>(due->rank)],
            state_.epoch.value);
    const auto* stop = std::get_if<job::Stop>(&effect);
    if (stop != nullptr && on_.size() > 1)
      after(k_stopping, Kind::stopped, on_[static_cast<std::size_t>(stop->rank)], state_.epoch.value);
  }
  if (newest<job::CleanUp>(step.effects) != nullptr)
    for (std::size_t i = 0; i < hosts_.size(); ++i)
      if (hosts_[i].connected) settle(i);
  if (const auto* due = newest<job::Place>(step.effects)) {
    if (blocked_at_) retry_ = due->after;  // asked again when a host appears
    else at(now_ + due->after.count(), Kind::place, 0);
  }
}

void Life::place() {
  if (!std::holds_alternative<job::Waiting>(state_.phase)) return;
  const Scheduler::Answer& answer = scheduler_.place(present(), state_.avoided);
  if (answer.members.empty()) {
    blocked_at_ = now_;
    return apply(job::NotPlaced{answer.could_ever_fit, answer.reason});
  }
  blocked_at_.reset();
  on_ = answer.hosts;
  host_ = on_.front();
  started_on_.assign(on_.size(), 0);
  std::vector<const HostModel*> models;
  for (const std::size_t host : on_) models.push_back(&model(host));
  here_ = together(models);
  // An elastic gang below its full size takes longer in proportion.
  here_.speed *= static_cast<double>(on_.size()) / std::max(scheduler_.choice.spec.num_nodes, 1);
  running_ = ended_here_ = false;
  tune();
  ++outcome_.attempts;
  apply(job::Placed{answer.members, answer.reason});
}

// Gives the job its interval when it is placed, like Supervisor::tune.
void Life::tune() {
  const job::CheckpointPolicy& policy = scheduler_.choice.spec.checkpoint;
  using Interval = job::CheckpointPolicy::Interval;
  if (policy.interval != Interval::automatic) {
    interval_.every = policy.interval == Interval::fixed ? policy.every : Duration{};
    return;
  }
  sched::CheckpointCost cost;
  if (measured_) {
    cost.stall = duration_of(std::max(scheduler_.grid.stall, k_stall_min));
    cost.upload = duration_of(measured_upload_);
  }
  cost.restart = state_.policy.lost_after + duration_of(here_.start);
  double rate = 0;
  for (const std::size_t host : on_) rate += rate_known(host);
  interval_ = sched::checkpoint_interval(cost, rate, interval_.every);
}

// Sends START to all members. A host that has disappeared unnoticed does not receive it: its silence will show that.
void Life::launch() {
  if (attempt() == nullptr || started_on_.front() != 0) return;
  for (const std::size_t host : on_)
    if (!hosts_[host].there.up()) return;
  for (std::size_t rank = 0; rank < on_.size(); ++rank) started_on_[rank] = hosts_[on_[rank]].life;
  const bool resumes = attempt()->resumed_from.value != 0;
  after(here_.start + (resumes ? here_.restore : 0), Kind::started, host_, state_.epoch.value);
  const auto ranks = static_cast<int>(on_.size());
  if (ranks > 1) {
    for (int rank = 0; rank < ranks; ++rank) apply(job::MemberPrepared{state_.epoch, rank});
    apply(job::MembersConnected{state_.epoch, "", {}, 0, ""});
  }
  for (int rank = 0; rank < ranks; ++rank) apply(job::LaunchAccepted{state_.epoch, rank});
}

Pace Life::pace_here() const {
  Pace pace;
  const bool never = interval_.every <= Duration{};
  pace.interval = never ? std::numeric_limits<double>::infinity() : seconds(interval_.every);
  pace.stall = scheduler_.grid.stall;
  pace.upload = here_.upload;
  pace.need = (scheduler_.grid.work - kept_) / here_.speed;
  return pace;
}

void Life::started() {
  for (int rank = 0; rank < static_cast<int>(on_.size()); ++rank) apply(job::PayloadStarted{state_.epoch, rank});
  const double idle = in_seconds(now_ - idle_since_);
  (ran_ ? outcome_.recovery : outcome_.start) += idle;
  ran_ = running_ = true;
  began_ = now_;
  pace_ = pace_here();
  for_move_ = {};
  priced_on_.clear();
  after(pace_.end(), Kind::ended, host_, state_.epoch.value);
  judge_stay();
}

void Life::commit(std::uint64_t count, Nanos safe_at) {
  if (count == 0) return;
  measured_ = true;
  measured_upload_ = pace_.upload;
  apply(job::CheckpointCommitted{state_.epoch, {state_.head.value + count}, "", count}, safe_at);
}

// Accounts for the time since the program came up, and for the part of its work that is kept.
void Life::account(double elapsed, const Saved& saved) {
  const double stalled = static_cast<double>(saved.count) * pace_.stall;
  outcome_.work += saved.work;
  outcome_.stalled += stalled;
  outcome_.lost += elapsed - saved.work - stalled;
  pay(elapsed);
  kept_ += saved.work * here_.speed;
  running_ = false;
  idle_since_ = now_;
  commit(saved.count, began_ + duration_of(saved.safe_at).count());
}

void Life::ended() {
  const double checkpoints = static_cast<double>(pace_.checkpoints());
  outcome_.work += pace_.need;
  outcome_.stalled += checkpoints * pace_.stall;
  const Saved saved = saved_after(pace_, pace_.end());
  pay(pace_.end());
  running_ = false;
  ended_here_ = true;
  idle_since_ = now_;
  commit(saved.count, began_ + duration_of(saved.safe_at).count());
  const Epoch epoch = state_.epoch;
  for (int rank = 0; rank < static_cast<int>(on_.size()); ++rank)
    apply(job::AttemptEnded{epoch, {job::EndKind::exited, 0, 0, "", rank}});
}

// Handles a member of a gang whose other member is gone.
void Life::stopped(std::size_t host) {
  apply(job::AttemptEnded{state_.epoch, {job::EndKind::stopped, -1, 0, "", rank_on(host)}});
}

void Life::pay(double seconds) {
  for (const job::Member& member : attempt()->members) outcome_.cost += member.price_per_hour * seconds / 3600;
}

void Life::collected(int rank) {
  if (ended_here_ && rank == 0) pay(in_seconds(now_ - idle_since_));
  apply(job::Collected{state_.epoch, "", rank});
}

Outcome Life::run(const std::function<bool()>& go_on) {
  constexpr std::uint64_t k_events_max = 20'000'000;  // such a life would not end
  constexpr std::uint64_t k_asked = 1 << 16;          // events between two questions whether to go on
  const auto horizon = static_cast<Nanos>(scheduler_.grid.horizon * 1e9);
  job::Step begun = job::submitted(JobId{"sim"}, scheduler_.choice.spec, wall(0));
  state_ = std::move(begun.state);
  at(0, Kind::place, 0);
  for (std::uint64_t events = 0; !queue_.empty() && !done_ && events < k_events_max; ++events) {
    std::pop_heap(queue_.begin(), queue_.end(), Later{});
    const Due due = queue_.back();
    queue_.pop_back();
    if (due.at > horizon || (events % k_asked == k_asked - 1 && go_on && !go_on())) break;
    now_ = due.at;
    turn(due);
  }
  outcome_.time = in_seconds(now_);
  if (outcome_.finished && ended_here_) outcome_.collecting = in_seconds(now_ - idle_since_);
  return outcome_;
}

Outcome live(Scheduler& scheduler, std::uint64_t seed, std::uint64_t number, const std::function<bool()>& go_on) {
  return Life(scheduler, seed, number).run(go_on);
}

}  // namespace gridctl::forecast
