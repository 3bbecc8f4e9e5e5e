// SPDX-License-Identifier: Apache-2.0
// Simulates a life's hosts: how they come and go, and when their silence is noticed.
#include <algorithm>
#include <cmath>
#include <map>

#include "forecast/life_impl.hpp"

namespace gridctl::forecast {

namespace {
constexpr Duration k_tick_counts = std::chrono::seconds{1};  // no tick of job::Silence counts for more
constexpr std::uint64_t k_streams = 0x9E3779B97F4A7C15ull;   // between two lives: what neighbours draw is unrelated

double drawn_rate(const HostModel& host, Random& random) {
  const double rate = host.rate_per_hour / 3600;
  if (host.rate_spread <= 0) return rate;
  return rate * std::exp(host.rate_spread * random.normal() - host.rate_spread * host.rate_spread / 2);
}
}  // namespace

Life::Life(Scheduler& scheduler, std::uint64_t seed, std::uint64_t number) : scheduler_(scheduler) {
  const Pacing& pacing = scheduler.grid.pacing;
  const Duration lost_after = scheduler.choice.spec.recovery.lost_after;
  heartbeat_ = std::clamp(lost_after / pacing.beats_to_lost, pacing.heartbeat_min, pacing.heartbeat);
  // The grid of ticks is as fine as lost_after requires, and never finer than the real one.
  tick_step_ = std::clamp(lost_after / 60, pacing.tick, k_tick_counts);
  Random streams(seed * k_streams + number);
  std::map<std::size_t, double> offsets;  // of traces
  for (const HostModel& host : scheduler.grid.hosts) {
    Random own = streams.fork();
    if (host.recorded != nullptr && !offsets.contains(host.trace)) {
      Random of_trace(seed * k_streams + number * 1'000'003 + host.trace);
      offsets[host.trace] = of_trace.unit() * host.recorded->length;
    }
    Availability there = host.recorded != nullptr ? Availability(host.recorded, offsets[host.trace])
                                                  : Availability(drawn_rate(host, own), host.outage, own.fork());
    Host one{std::move(there), own.fork(), 1, false, false, false, 0, 0, job::FailureDetector(pacing.nap), 0, {}};
    one.connected = one.seen = one.there.up();
    hosts_.push_back(std::move(one));
  }
  if (const auto& due = scheduler.choice.spec.deadline; due && !scheduler.choice.by_price)
    deadline_ = static_cast<double>(job::moment_of(*due, wall(0)).ms - wall(0).ms) / 1000;
  for (std::size_t i = 0; i < hosts_.size(); ++i) {
    hosts_[i].silence.answered(boot());
    arm(i);
  }
}

void Life::at(Nanos when, Kind kind, std::size_t host, std::uint64_t epoch) {
  queue_.push_back({when, order_++, kind, static_cast<std::uint32_t>(host), hosts_[host].life, epoch});
  std::push_heap(queue_.begin(), queue_.end(), Later{});
}

void Life::after(double seconds, Kind kind, std::size_t host, std::uint64_t epoch) {
  constexpr double k_far = 9e9;  // seconds; nanoseconds end there
  at(now_ + static_cast<Nanos>(std::llround(std::clamp(seconds, 0.0, k_far - in_seconds(now_)) * 1e9)), kind, host,
     epoch);
}

void Life::arm(std::size_t host) {
  const double next = hosts_[host].there.next();
  if (std::isfinite(next)) after(next - in_seconds(now_), Kind::change, host);
}

void Life::turn(const Due& due) {
  Host& host = hosts_[due.host];
  const bool same = due.life == host.life;
  const bool ours = due.epoch == state_.epoch.value && attempt() != nullptr;
  switch (due.kind) {
    case Kind::change: return changed(due.host);
    case Kind::place: return place();
    case Kind::connected:
      if (same && host.there.up()) connected(due.host);
      return;
    case Kind::tick:
      if (!host.connected && due.epoch == host.silences) tick(due.host);
      return;
    case Kind::started:
      if (ours && all_hold()) started();
      return;
    case Kind::ended:
      if (ours && same && running_) ended();
      return;
    case Kind::stopped:
      if (ours && same && host.there.up()) stopped(due.host);
      return;
    case Kind::collected:
      // A result cannot be fetched from a host that is gone; after a reboot there is no result.
      if (ours && (!ended_here_ || (same && host.there.up()))) collected(rank_on(due.host));
      return;
    case Kind::look:
      if (ours && due.at == next_look_) judge_stay();
      return;
    case Kind::move:
      if (ours && same && running_) move();
      return;
  }
}

void Life::changed(std::size_t index) {
  Host& host = hosts_[index];
  host.there.pass();
  if (host.there.up()) {
    ++host.life;
    // A host with a job is tried as often as its heartbeat, an idle one less often.
    const Duration pause = is_on(index) ? heartbeat_ : scheduler_.grid.pacing.reconnect;
    after(host.random.unit() * gridctl::seconds(pause), Kind::connected, index);
  } else {
    went(index);
  }
  arm(index);
}

void Life::went(std::size_t index) {
  Host& host = hosts_[index];
  if (model(index).recorded != nullptr && host.connected) {
    host.watched.push_back({wall(host.watched_since), wall(now_), true});
    host.estimated_at.reset();
  }
  const bool noticed_up = host.connected;
  host.connected = false;
  if (const int rank = rank_on(index); rank >= 0) {
    if (started_on_[static_cast<std::size_t>(rank)] == host.life) ++outcome_.failures;
    if (running_) {
      const double elapsed = in_seconds(now_ - began_);
      account(elapsed, saved_after(pace_, elapsed));
    }
  }
  if (!noticed_up) return;  // the silence goes on
  // Nothing is known until the next poll stays without an answer.
  const Duration beat = is_on(index) ? heartbeat_ : scheduler_.grid.pacing.heartbeat_idle;
  host.ticking = true;
  host.asked_since = 0;
  after(host.random.unit() * gridctl::seconds(beat), Kind::tick, index, ++host.silences);
}

bool Life::others_answer(std::size_t index) const {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (i != index && hosts_[i].connected) return true;
  return false;
}

void Life::tick(std::size_t index) {
  Host& host = hosts_[index];
  if (!host.ticking) return;
  if (host.asked_since == 0) {  // the poll that stays unanswered
    host.asked_since = now_ + 1;
    host.silence.answered(boot());
  }
  const bool witnessed = others_answer(index);
  host.silence.tick(boot(), witnessed);
  const Duration patience = heartbeat_ * scheduler_.grid.pacing.patience_beats;
  if (now_ - host.asked_since >= patience.count() ||
      host.silence.judge(state_.policy.lost_after) > job::Liveness::suspect)
    host.seen = false;
  const bool lost = host.silence.judge(state_.policy.lost_after) == job::Liveness::lost;
  const bool unnoticed = host.seen;
  if (const int rank = rank_on(index); lost && rank >= 0)
    apply(job::HostLost{state_.epoch, host.silence.counted(), rank});
  if (unnoticed && !host.seen && !is_on(index)) judge_stay();
  // While only silent hosts are left, nothing is counted; the ticks continue when a host answers. Hosts without the job
  // are only asked whether they are there.
  host.ticking = !lost && ((witnessed && is_on(index)) || unnoticed);
  if (host.ticking) at(now_ + tick_step_.count(), Kind::tick, index, host.silences);
}

// Resumes the ticks of the job's hosts, once another host answers.
void Life::resume_ticks() {
  if (attempt() == nullptr) return;
  for (const std::size_t index : on_) {
    Host& host = hosts_[index];
    const bool silent = !host.connected && host.asked_since != 0 && !host.ticking;
    if (!silent || host.silence.judge(state_.policy.lost_after) == job::Liveness::lost) continue;
    host.silence.tick(boot(), false);
    host.ticking = true;
    at(now_ + tick_step_.count(), Kind::tick, index, host.silences);
  }
}

void Life::connected(std::size_t index) {
  Host& host = hosts_[index];
  host.connected = host.seen = true;
  host.ticking = false;
  host.watched_since = now_;
  host.silence.answered(boot());
  resume_ticks();
  if (const int rank = rank_on(index); rank >= 0) {
    const std::uint64_t started_on = started_on_[static_cast<std::size_t>(rank)];
    const bool starting = started_on == 0 && std::holds_alternative<job::Launching>(state_.phase);
    if (starting) launch();
    else if (started_on != host.life && std::holds_alternative<job::Collecting>(state_.phase))
      collected(rank);  // nothing of the result is left
    else if (started_on != host.life)
      apply(job::AttemptEnded{state_.epoch, {job::EndKind::host_rebooted, -1, 0, "", rank}});
  }
  if (!done_) settle(index);
  if (!done_ && !is_on(index)) judge_stay();
  if (blocked_at_ && !done_) {
    const Nanos retry = std::max<Nanos>(retry_.count(), 1);
    const Nanos rounds = (now_ - *blocked_at_ + retry - 1) / retry;
    at(*blocked_at_ + std::max<Nanos>(rounds, 1) * retry, Kind::place, 0);
    blocked_at_.reset();
  }
}

// The host confirms that it has nothing left of former attempts.
void Life::settle(std::size_t index) {
  std::vector<Epoch> there;
  for (const job::PendingCleanup& end : state_.pending_cleanups)
    if (end.host == model(index).facts.name) there.push_back(end.epoch);
  for (const Epoch epoch : there) apply(job::CleanedUp{model(index).facts.name, epoch});
}

// Learns the rate from recorded hosts; looks again after each failure, and now and then while there is none.
double Life::rate_known(std::size_t index) {
  constexpr Nanos k_rate_holds = 600'000'000'000;
  Host& host = hosts_[index];
  if (model(index).recorded == nullptr) return std::max(model(index).rate_per_hour, 1e-9);
  if (!host.estimated_at || now_ - *host.estimated_at >= k_rate_holds) {
    host.rate = estimated_rate(index);
    host.estimated_at = now_;
  }
  return host.rate;
}

double Life::estimated_rate(std::size_t index) const {
  const Host& host = hosts_[index];
  std::vector<sched::Watched> seen = host.watched;
  if (host.connected) seen.push_back({wall(host.watched_since), wall(now_), false});
  return sched::estimate(model(index).rate_per_hour, std::move(seen), wall(now_)).rate_per_hour;
}

}  // namespace gridctl::forecast
