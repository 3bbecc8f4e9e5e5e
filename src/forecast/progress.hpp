// SPDX-License-Identifier: Apache-2.0
// Computes the progress of an attempt on one host. Pure; times are seconds since its program came up.
//
// The program computes for `interval`, stands still for `stall` while a checkpoint is taken, and continues. A
// checkpoint
// is safe `upload` after it was taken; one is fetched at a time, and the next one fetched is the newest at that time.
#pragma once

#include <cstdint>

namespace gridctl::forecast {

struct Pace {
  double interval = 0;  // > 0; infinite: no checkpoints
  double stall = 0;
  double upload = 0;
  double need = 0;  // time this host must compute until the job is done

  // Counts the checkpoints until the end, without one at the end of the work, when the result is fetched anyway.
  [[nodiscard]] std::uint64_t checkpoints() const;
  // Returns the time at which the program ends.
  [[nodiscard]] double end() const { return need + static_cast<double>(checkpoints()) * stall; }
};

struct Saved {
  std::uint64_t count = 0;  // number of the newest safe checkpoint, 0 = none
  double safe_at = 0;
  double work = 0;  // seconds of computing in it
};
// Returns the safe progress after `elapsed` seconds.
[[nodiscard]] Saved saved_after(const Pace& pace, double elapsed);
// Returns the next checkpoint if, after `elapsed` seconds, the program is asked to save `soon` after the last one.
// count 0: the program ends before that is safe.
[[nodiscard]] Saved saved_soon(const Pace& pace, double elapsed, double soon);

}  // namespace gridctl::forecast
