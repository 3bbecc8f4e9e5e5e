// SPDX-License-Identifier: Apache-2.0
// Holds the state of a life in progress. For forecast only.
#pragma once

#include <algorithm>

#include "forecast/availability.hpp"
#include "forecast/life.hpp"
#include "forecast/progress.hpp"
#include "job/failure_detector.hpp"
#include "sched/interval.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::forecast {

class Life {
 public:
  Life(Scheduler& scheduler, std::uint64_t seed, std::uint64_t number);
  [[nodiscard]] Outcome run(const std::function<bool()>& go_on);

 private:
  using Nanos = std::int64_t;
  enum class Kind : std::uint8_t { change, connected, tick, place, started, ended, stopped, collected, look, move };
  struct Due {
    Nanos at;
    std::uint64_t order;
    Kind kind;
    std::uint32_t host;
    std::uint64_t life, epoch;  // what was meant for an earlier one is dropped
  };
  struct Later {
    bool operator()(const Due& a, const Due& b) const { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };
  struct Host {
    Availability there;
    Random random;  // for what the timing of polls makes of an event
    std::uint64_t life = 1;
    bool connected = false;  // up, and we know it
    bool seen = false;       // for all we know
    bool ticking = false;
    std::uint64_t silences = 0;  // number of the newest one
    Nanos asked_since = 0;       // for the poll that stays unanswered
    job::FailureDetector silence;
    Nanos watched_since = 0;
    std::vector<sched::Watched> watched;
    std::optional<Nanos> estimated_at{};  // its rate
    double rate = 0;
  };

  // life.cpp: the job
  void apply(job::Event what, Nanos stamp);
  void apply(job::Event what) { apply(std::move(what), now_); }
  void place();
  void launch();
  void started();
  void ended();
  void stopped(std::size_t host);
  void collected(int rank);
  void account(double elapsed, const Saved& saved);
  void pay(double seconds);  // of the attempt's host
  void commit(std::uint64_t count, Nanos safe_at);
  [[nodiscard]] Pace pace_here() const;
  void tune();
  [[nodiscard]] const job::Attempt* attempt() const { return state_.attempt(); }
  // Returns the rank on that host; -1: none.
  [[nodiscard]] int rank_on(std::size_t host) const {
    const auto found = attempt() == nullptr ? on_.end() : std::ranges::find(on_, host);
    return found == on_.end() ? -1 : static_cast<int>(found - on_.begin());
  }
  [[nodiscard]] bool is_on(std::size_t host) const { return rank_on(host) >= 0; }
  // Returns whether the host that received the rank's START is still in the same boot.
  [[nodiscard]] bool holds(std::size_t rank) const {
    const Host& host = hosts_[on_[rank]];
    return started_on_[rank] == host.life && host.there.up();
  }
  [[nodiscard]] bool all_hold() const {
    for (std::size_t rank = 0; rank < on_.size(); ++rank)
      if (!holds(rank)) return false;
    return true;
  }

  // life_moves.cpp
  [[nodiscard]] Scheduler::Now present();
  struct Stay {
    Scheduler::Now now;
    sched::JobKnowledge known;
    sched::CurrentRun here;
  };
  [[nodiscard]] bool may_leave() const;
  [[nodiscard]] Saved saved_by(double elapsed) const;
  [[nodiscard]] Stay stay();
  void judge_stay();
  bool judge_deadline(const Stay& now);
  bool prices_changed(const std::vector<bool>& seen);
  [[nodiscard]] std::optional<std::string> cheaper(const Stay& now);
  void look_again(double seconds);
  void prepare_move(std::string_view why, const std::string& text, double failures_max);
  void move();

  // life_hosts.cpp: the hosts
  void turn(const Due& due);
  void changed(std::size_t host);
  void went(std::size_t host);
  void connected(std::size_t host);
  void tick(std::size_t host);
  void resume_ticks();
  [[nodiscard]] bool others_answer(std::size_t host) const;
  [[nodiscard]] double rate_known(std::size_t host);
  [[nodiscard]] double estimated_rate(std::size_t host) const;
  void settle(std::size_t host);

  void at(Nanos when, Kind kind, std::size_t host, std::uint64_t epoch = 0);
  void after(double seconds, Kind kind, std::size_t host, std::uint64_t epoch = 0);
  void arm(std::size_t host);
  [[nodiscard]] const HostModel& model(std::size_t host) const { return scheduler_.grid.hosts[host]; }
  [[nodiscard]] BootTime boot() const { return {now_ + 1}; }  // 0 is never
  [[nodiscard]] static WallTime wall(Nanos at) { return {1'800'000'000'000 + at / 1'000'000}; }
  [[nodiscard]] static double in_seconds(Nanos span) { return static_cast<double>(span) * 1e-9; }

  Scheduler& scheduler_;
  std::vector<Due> queue_;
  std::uint64_t order_ = 0;
  Nanos now_ = 0;
  std::vector<Host> hosts_;
  Duration heartbeat_{};
  Duration tick_step_{};

  job::State state_;
  bool done_ = false;
  std::size_t host_ = 0;                   // of the attempt's rank 0
  std::vector<std::size_t> on_;            // hosts of the attempt, by rank
  std::vector<std::uint64_t> started_on_;  // life of the host that took the START, by rank; 0 = none yet
  HostModel here_;                         // all of them together
  bool running_ = false;                   // the program computes
  bool ended_here_ = false;                // its program ended; its result is being fetched
  Nanos began_ = 0;                        // it came up
  Nanos idle_since_ = 0;                   // nothing computes since then
  bool ran_ = false;                       // ever
  double kept_ = 0;                        // work in the head, seconds at speed 1
  Pace pace_;
  Saved for_move_;            // the checkpoint that a move waits for; count 0: none
  sched::Interval interval_;  // told to the job
  bool measured_ = false;     // the cost of a checkpoint is known
  double measured_upload_ = 0;
  std::optional<double> deadline_;   // seconds from the beginning
  std::vector<bool> priced_on_;      // hosts that were there when a cheaper one was looked for last,
  Nanos priced_at_ = 0;              // at this time
  Nanos next_look_ = 0;              // whether it stays where it is
  std::optional<Nanos> blocked_at_;  // nothing could be placed then
  Duration retry_{};                 // the scheduler is asked again so often
  Outcome outcome_;
};

}  // namespace gridctl::forecast
