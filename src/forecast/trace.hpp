// SPDX-License-Identifier: Apache-2.0
// Reads recorded availability: how many hosts of a request were up, sample by sample. Pure.
//
// Two forms are read. The first is the one in which the traces of "Can't Be Late" (NSDI 2024) are published:
//   {"metadata": {"gap_seconds": 195}, "data": [0, 0, 1, 1, …]}      other keys are ignored
// The second is run lengths, as lines of text ('#' begins a comment):
//   gap_seconds,195
//   hosts_up,samples
//   0,1038
//   1,14
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::forecast {

inline constexpr std::size_t k_trace_bytes_max = 64 << 20;           // a year of seconds, as published
inline constexpr std::uint64_t k_trace_samples_max = 1'000'000'000;  // of run lengths
inline constexpr int k_trace_hosts_max = 10'000;

struct Trace {
  struct Run {
    int hosts_up = 0;
    std::uint64_t samples = 0;
  };
  std::string name;        // of the file
  double gap_seconds = 0;  // between two samples
  std::vector<Run> runs;   // neighbours differ
  int hosts_max = 0;       // at once; at least 1
  [[nodiscard]] double length_seconds() const;
};

// Fails with bad_job_file, "FILE:LINE:COLUMN: expected …, got …", also for a trace without samples, or one in which no
// host is ever up.
[[nodiscard]] Result<Trace> parse_trace(std::string_view text, const std::string& file);

// Describes one host of a trace that repeats forever.
struct UpTimes {
  struct Change {
    double at = 0;  // seconds from the beginning of the trace
    bool up = false;
  };
  double length = 0;  // seconds
  bool up = false;    // when nothing ever changes
  std::vector<Change> changes;
};
// Returns the host of this rank (0…) among `hosts`: as many of them are up as were in the trace, in proportion, rounded
// up; the lowest ranks are up first. With as many hosts as in the trace, the result is the trace itself.
[[nodiscard]] std::shared_ptr<const UpTimes> up_times(const Trace& trace, int rank, int hosts);

}  // namespace gridctl::forecast
