// SPDX-License-Identifier: Apache-2.0
// Simulates a life's moves, for its deadline or to a cheaper host: Supervisor::judge_deadline, Supervisor::judge_price
// and control::judge_move in virtual time.
#include <algorithm>
#include <cmath>

#include "forecast/life_impl.hpp"
#include "sched/cheaper.hpp"

namespace gridctl::forecast {

namespace {
constexpr double k_look_min = 30, k_look_max = 3600;  // seconds between two looks while no host comes or goes
}

Scheduler::Now Life::present() {
  Scheduler::Now now;
  bool learned = false;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    now.seen.push_back(hosts_[i].seen);
    learned = learned || model(i).recorded != nullptr;
  }
  if (learned)
    for (std::size_t i = 0; i < hosts_.size(); ++i) now.rates.push_back(rate_known(i));
  now.work = scheduler_.grid.work - kept_;
  now.resumes = state_.head.value != 0;
  if (deadline_) now.time_left = *deadline_ - in_seconds(now_);
  now.failures_max = state_.failures_max;
  return now;
}

void Life::look_again(double seconds) {
  next_look_ = now_ + static_cast<Nanos>(std::clamp(seconds, k_look_min, k_look_max) * 1e9);
  at(next_look_, Kind::look, host_, state_.epoch.value);
}

bool Life::may_leave() const {
  const auto* running = std::get_if<job::Running>(&state_.phase);
  const job::Spec& spec = scheduler_.choice.spec;
  const bool never = spec.checkpoint.interval == job::CheckpointPolicy::Interval::off;
  return !never && !scheduler_.is_gang() && !scheduler_.choice.by_price && running_ && running != nullptr &&
         !running->move;
}

Life::Stay Life::stay() {
  const double elapsed = in_seconds(now_ - began_), speed = model(host_).speed;
  const double done = std::min(pace_.need, elapsed * pace_.interval / (pace_.interval + pace_.stall)) * speed;
  Stay stay{present(), {}, {}};
  const double rest = stay.now.work - done;
  if (const Saved saved = saved_by(elapsed); saved.count > 0) {
    stay.now.work -= saved.work * speed;
    stay.now.resumes = true;
  }
  stay.known = scheduler_.known(stay.now);
  stay.here = scheduler_.going_on(stay.known, rest, attempt()->lead(), host_);
  return stay;
}

void Life::judge_stay() {
  const bool for_less =
      sched::may_move_for_less(scheduler_.choice.spec) && may_leave() && attempt()->lead().price_per_hour > 0;
  if (!may_leave() || (!deadline_ && !for_less)) return;
  const Stay now = stay();
  if (now.known.time_left && *now.known.time_left <= 0) return;
  if (deadline_ && judge_deadline(now)) return;
  if (!for_less || !prices_changed(now.now.seen)) return;
  if (const auto why = cheaper(now)) return prepare_move(job::k_for_less, *why, 0);
  if (!deadline_ && !now.now.rates.empty()) look_again(k_look_max);  // what is known of hosts changes
}

// Returns whether hosts came or went, or much time has passed since the last question.
bool Life::prices_changed(const std::vector<bool>& seen) {
  if (priced_on_ == seen && now_ - priced_at_ < static_cast<Nanos>(k_look_max * 1e9)) return false;
  priced_on_ = seen;
  priced_at_ = now_;
  return true;
}

// Returns whether the job moves.
bool Life::judge_deadline(const Stay& now) {
  const double time_left = *now.known.time_left;
  const sched::Decision other =
      scheduler_.decide(now.now, sched::after_failure(now.known, now.here), state_.avoided, host_);
  const sched::DeadlineVerdict verdict = sched::judge_deadline(now.here, other, time_left);
  if (verdict.kind == sched::DeadlineVerdict::Kind::leave) {
    prepare_move(job::k_for_deadline, verdict.text, verdict.failures_max);
    return true;
  }
  // The margin cannot shrink faster than time passes; once it is negative, only a checkpoint or another host helps.
  const double margin = other.placement ? time_left - now.here.silence - other.placement->safely : k_look_max;
  look_again((margin > 0 ? margin : pace_.interval) / 2);
  return false;
}

std::optional<std::string> Life::cheaper(const Stay& now) {
  const sched::Decision other = scheduler_.decide(now.now, sched::for_less(now.known, now.here), state_.avoided, host_);
  return sched::judge_cheaper(now.here, other, state_.avoided);
}

// Leaves when a checkpoint that is taken from now on is safe; if there is none, the attempt ends here. A job whose
// interval gridctl sets is told to save soon; a job with its own interval continues as before.
void Life::prepare_move(std::string_view why, const std::string& text, double failures_max) {
  const double elapsed = in_seconds(now_ - began_), cycle = pace_.interval + pace_.stall;
  const auto taken = static_cast<std::uint64_t>(std::floor(elapsed / cycle));
  apply(job::MoveRequested{state_.epoch, std::string(why), taken, {}, text, failures_max});
  const bool follows = scheduler_.choice.spec.checkpoint.interval == job::CheckpointPolicy::Interval::automatic;
  for_move_ = saved_soon(pace_, elapsed, follows ? seconds(interval_.soon) : pace_.interval);
  if (for_move_.count > 0) after(for_move_.safe_at - elapsed, Kind::move, host_, state_.epoch.value);
}

// Returns the safe progress after this many seconds of the attempt.
Saved Life::saved_by(double elapsed) const {
  return for_move_.count > 0 && for_move_.safe_at <= elapsed ? for_move_ : saved_after(pace_, elapsed);
}

void Life::move() {
  const auto* running = std::get_if<job::Running>(&state_.phase);
  if (running == nullptr || !running->move) return;
  const Stay now = stay();
  bool worth_it = !now.known.time_left || *now.known.time_left > 0;
  if (running->move->why == job::k_for_less) {
    worth_it = worth_it && cheaper(now);
  } else {
    const sched::Decision other = scheduler_.decide(now.now, now.known, state_.avoided, host_);
    const auto& to = other.placement;
    worth_it = worth_it && to && (now.now.failures_max <= 0 || to->failures_per_hour <= now.now.failures_max);
  }
  if (!worth_it) {
    apply(job::MoveWithdrawn{state_.epoch});
    for_move_ = {};
    return look_again(0);
  }
  const double elapsed = in_seconds(now_ - began_);
  account(elapsed, saved_by(elapsed));
  ++outcome_.moves;
  apply(job::MoveDue{state_.epoch});
  job::End end;
  end.kind = job::EndKind::stopped;
  apply(job::AttemptEnded{state_.epoch, end});
}

}  // namespace gridctl::forecast
