// SPDX-License-Identifier: Apache-2.0
// Decides whether a job on one host hangs. It has no peers, so it is compared with itself: it hangs when it prints
// nothing, saves nothing, and its GPUs (or processors) are idle, for far longer than ever before. A job that is usually
// idle (a server, an interpreter that waits for a person) is never judged. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.hpp"

namespace gridctl::job {

inline constexpr int k_idle_percent = 5;             // below it, nothing is computed
inline constexpr int k_busy_habit = 10;              // percent: a job that is usually less busy is not judged
inline constexpr std::uint64_t k_habit_measured = 6;  // measurements before a habit is known
inline constexpr int k_times_longest = 3;            // its longest idle time so far

class Idleness {
 public:
  // `least`: no shorter idle time is a hang.
  explicit Idleness(Duration least) : least_(least) {}
  void sign(BootTime at);               // it printed or saved something
  void measured(int percent, BootTime at);  // how busy its GPUs or processors are
  void unknown(BootTime at);            // nobody could measure it: the time so far does not count
  struct Hang {
    Duration silent{};
    int usual = 0;  // percent
    [[nodiscard]] std::string text(std::string_view what) const;  // "no output, no checkpoint and idle GPUs for 12m; …"
  };
  [[nodiscard]] std::optional<Hang> hang(BootTime now) const;

 private:
  [[nodiscard]] std::optional<int> usual() const;  // the median of measurements, up to the last sign of life
  void alive(BootTime at);

  Duration least_;
  Duration longest_{};  // between two signs of life
  std::optional<BootTime> last_;
  std::array<std::uint64_t, 101> seen_{};  // measurements by percentage
  std::uint64_t count_ = 0;
  std::array<std::uint64_t, 101> since_{};  // those since the last sign of life
};

}  // namespace gridctl::job
