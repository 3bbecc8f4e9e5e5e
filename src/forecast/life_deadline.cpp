// SPDX-License-Identifier: Apache-2.0
// A life's deadline: Supervisor::judge_deadline and control::judge_move in virtual time.
#include <algorithm>
#include <cmath>

#include "forecast/life_impl.hpp"

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

void Life::judge_deadline() {
  const auto* running = std::get_if<job::Running>(&state_.phase);
  const bool never = scheduler_.choice.spec.checkpoint.interval == job::CheckpointPolicy::Interval::off;
  if (!deadline_ || never || !running_ || running == nullptr || running->move) return;
  Scheduler::Now now = present();
  if (*now.time_left <= 0) return;
  const double elapsed = in_seconds(now_ - began_), speed = model(host_).speed;
  const double done = std::min(pace_.need, elapsed * pace_.interval / (pace_.interval + pace_.stall)) * speed;
  const double rest = now.work - done;
  if (const Saved saved = saved_after(pace_, elapsed); saved.count > 0) {
    now.work -= static_cast<double>(saved.count) * pace_.interval * speed;
    now.resumes = true;
  }
  const sched::Known known = scheduler_.known(now);
  const sched::Present here = scheduler_.going_on(known, rest, running->attempt.members.front(), host_);
  const sched::Decision other = scheduler_.decide(now, sched::after_failure(known, here), state_.avoided, host_);
  const sched::DeadlineVerdict verdict = sched::judge_deadline(here, other, *now.time_left);
  if (verdict.kind == sched::DeadlineVerdict::Kind::leave) return prepare_move(verdict.text, verdict.failures_max);
  // It cannot become too late sooner than time passes.
  const double margin = other.placement ? *now.time_left - here.silence - other.placement->safely : k_look_max;
  look_again(margin / 2);
}

// It leaves when a checkpoint that is taken from now on is safe; should there be none, it ends here.
void Life::prepare_move(const std::string& why, double failures_max) {
  const double elapsed = in_seconds(now_ - began_), cycle = pace_.interval + pace_.stall;
  const auto taken = static_cast<std::uint64_t>(std::floor(elapsed / cycle));
  apply(job::MoveRequested{state_.epoch, std::string(job::k_for_deadline), taken, {}, why, failures_max});
  if (taken >= pace_.checkpoints()) return;
  double safe_at = static_cast<double>(taken + 1) * cycle + pace_.upload;
  while (saved_after(pace_, safe_at).count <= taken) safe_at += pace_.upload;
  after(safe_at - elapsed, Kind::move, host_, state_.epoch.value);
}

void Life::move() {
  const double elapsed = in_seconds(now_ - began_);
  const Saved saved = saved_after(pace_, elapsed);
  Scheduler::Now now = present();
  now.work -= static_cast<double>(saved.count) * pace_.interval * model(host_).speed;
  now.resumes = true;
  const sched::Decision other = scheduler_.decide(now, scheduler_.known(now), state_.avoided, host_);
  const auto& to = other.placement;
  const bool sound = to && (now.failures_max <= 0 || to->failures_per_hour <= now.failures_max);
  if (*now.time_left <= 0 || !sound) {
    apply(job::MoveWithdrawn{state_.epoch});
    return look_again(0);
  }
  account(elapsed, saved);
  ++outcome_.moves;
  apply(job::MoveDue{state_.epoch});
  job::End end;
  end.kind = job::EndKind::stopped;
  apply(job::AttemptEnded{state_.epoch, end});
}

}  // namespace gridctl::forecast
