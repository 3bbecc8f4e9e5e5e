// SPDX-License-Identifier: Apache-2.0
// Counts how often a job fails for one cause, on one host or anywhere, so that each further try comes later and a
// program's own faults are charged to it in the end. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/names.hpp"
#include "base/time.hpp"

namespace gridctl::job {

enum class Cause : std::uint8_t {
  refused,    // the host does not take the job
  unreached,  // this machine could not talk to the host, or had trouble of its own
  host,       // the host could not start the job
  killed,     // by a signal, and nobody outside is known to have sent it
  words,      // the program's last words blame the host, or something that passes
};
inline constexpr Names<Cause, Cause::words> cause_name{"refused", "unreached", "host", "killed", "words"};

struct Setback {
  HostName host;  // empty: of the job, wherever it was
  Cause cause = Cause::refused;
  int in_row = 0;
  WallTime until{};      // the host is left alone until then
  std::string detail{};  // of the last one, for people
  bool operator==(const Setback&) const = default;
};

inline constexpr Duration k_rest_max = std::chrono::seconds{60};  // a flapping grid is retried at most once a minute
// Returns the wait after this many failures in a row: the first retry is immediate, then 1 s, 2 s, 4 s...
[[nodiscard]] Duration rest_after(int in_row);

// Returns how often it has happened in a row.
int note_setback(std::vector<Setback>& list, const HostName& host, Cause cause, const std::string& detail,
                 WallTime now);
// The job has started there.
void forget_setbacks(std::vector<Setback>& list, const HostName& host);
void forget_setback(std::vector<Setback>& list, const HostName& host, Cause cause);
// Returns the longest streak of the job itself, on any host.
[[nodiscard]] int streak_anywhere(const std::vector<Setback>& list);
// Returns why the job avoids the host now and until when, for people; empty: it does not.
[[nodiscard]] std::string why_resting(const std::vector<Setback>& list, const HostName& host, WallTime now);

}  // namespace gridctl::job
