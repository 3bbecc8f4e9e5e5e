// SPDX-License-Identifier: Apache-2.0
// How far an attempt comes on one host. Pure; times are seconds since its program came up.
//
// The program computes for `interval`, stands still for `stall` while a checkpoint is taken, and goes on. A checkpoint
// is safe `upload` after it was taken; one is fetched at a time, and the next one fetched is the newest by then.
#pragma once

#include <cstdint>

namespace gridctl::forecast {

struct Pace {
  double interval = 0;  // > 0; infinite: no checkpoints
  double stall = 0;
  double upload = 0;
  double need = 0;  // time this host must compute until the job is done

  // Checkpoints taken until the end; none when the work ends, for the result is fetched then.
  [[nodiscard]] std::uint64_t checkpoints() const;
  // When the program ends.
  [[nodiscard]] double end() const { return need + static_cast<double>(checkpoints()) * stall; }
};

struct Saved {
  std::uint64_t count = 0;  // number of the newest safe checkpoint, 0 = none
  double safe_at = 0;
  double work = 0;  // seconds of computing in it
};
// Returns the safe progress after `elapsed` seconds.
[[nodiscard]] Saved saved_after(const Pace& pace, double elapsed);
// The next checkpoint when after `elapsed` seconds the program is asked to save `soon` after the last one. count 0: it
// ends before that is safe.
[[nodiscard]] Saved saved_soon(const Pace& pace, double elapsed, double soon);

}  // namespace gridctl::forecast
