// SPDX-License-Identifier: Apache-2.0
// Decides whether a gang makes progress, and whether one rank delays the others. Judged from outside, by the steps that
// ranks report, by their log lines and by checkpoints. Pure: values in, a word out; time comes with the events.
//
// Ranks of a synchronous job step together, so the time between two steps is the same for all, whichever is slow. The
// useful figure is how long each computes before it waits for the others (`busy`). If ranks do not report that,
// RankPace
// compares the moments of steps; the controller reads those too rarely, and judges only ranks that report it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace gridctl::job {

inline constexpr std::size_t k_pace_steps = 10;  // steps that a judgement needs
inline constexpr double k_slow_factor = 1.5;     // times the median of its peers, in most of those steps
inline constexpr double k_hang_factor = 3;       // times the usual step without any progress
inline constexpr Duration k_hang_least = std::chrono::seconds{30};  // a shorter pause is an evaluation or a cold cache
inline constexpr Duration k_hang_most = std::chrono::minutes{1};    // of a job that steps faster than once in 20 s

// A rank reports a step: a line of $GRIDCTL_METRICS such as {"step": 120, "step_s": 0.42}.
struct RankStep {
  std::uint32_t rank = 0;
  std::int64_t step = 0;
  BootTime at;                  // when it was read, by one clock for all ranks
  std::optional<double> busy_s;  // what it computed, waiting not counted
};

struct Straggler {
  std::uint32_t rank = 0;
  double factor = 1;       // its time to the median of the others'
  std::size_t steps = 0;   // in which it was so slow, of the last k_pace_steps
  [[nodiscard]] std::string text() const;  // "rank 3 takes 3.3 times as long as its peers (in 10 of 10 steps)"
};

class RankPace {
 public:
  explicit RankPace(std::uint32_t world) : world_(world) {}
  // A new epoch needs a new RankPace. Steps may arrive late, twice or never.
  void told(const RankStep& step);
  // Returns the slowest rank that is slower than its peers in at least eight of the last ten steps; nullopt: none, or
  // too few steps are known.
  [[nodiscard]] std::optional<Straggler> straggler() const;
  [[nodiscard]] std::size_t steps() const { return whole_.size(); }

 private:
  struct StepTimes {
    std::map<std::uint32_t, RankStep> ranks;
  };
  [[nodiscard]] std::vector<double> costs(std::size_t index) const;  // of each rank in that step; empty: not comparable

  std::uint32_t world_;
  std::map<std::int64_t, StepTimes> open_;  // not yet told by all
  std::deque<StepTimes> whole_;             // the last of them
};

// Judges whether a job makes no progress although all of its hosts answer.
class Progress {
 public:
  // Notes a step, a log line or a checkpoint. Regular signs define how long is too long; a job with only one sign so
  // far is not judged.
  void sign(BootTime at);
  // Notes that the usual rhythm stops for a known reason: setup, saving, waiting for a host.
  void pause(BootTime at);
  struct Hang {
    Duration silent{}, allowed{};
    [[nodiscard]] std::string text() const;  // "no progress for 61 s; usually there is progress every 2 s"
    Duration usual{};
  };
  [[nodiscard]] std::optional<Hang> hang(BootTime now) const;
  // Returns the longest allowed silence of this job; nullopt: not known yet.
  [[nodiscard]] std::optional<Duration> allowed() const;

 private:
  std::optional<BootTime> last_;
  std::deque<Duration> gaps_;  // the last of them, newest at the back
};

}  // namespace gridctl::job
