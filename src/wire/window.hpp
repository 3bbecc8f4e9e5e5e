// SPDX-License-Identifier: Apache-2.0
// How many bytes of a stream may be under way: the arithmetic of credit, and the round trip that it follows. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace gridctl::wire {

// A new stream may carry so many bytes each way before anything was granted: its first data follow the request at once.
inline constexpr std::uint64_t k_window_first = 64 * 1024;
inline constexpr std::uint64_t k_window_usual = 384 * 1024;  // grown to whatever queues; 70 Mbit/s at 40 ms
inline constexpr std::uint64_t k_window_max = 4u << 20;      // 800 Mbit/s at 40 ms

// The round trip of a conversation, from pings that travel between the data.
class RoundTrip {
 public:
  void measured(Duration sample, BootTime now);
  // The shortest of the last minute: without what waits in queues. nullopt: nothing was measured yet.
  [[nodiscard]] std::optional<Duration> least() const;
  // As it is now, smoothed, with what waits in queues. nullopt: as above.
  [[nodiscard]] std::optional<Duration> now() const { return smooth_; }
  // True if what is under way fills queues: more of it would delay others and carry nothing more.
  [[nodiscard]] bool is_queueing() const;

 private:
  std::optional<Duration> smooth_, least_, least_before_;  // least: of this half minute, and of the one before it
  BootTime half_began_{};
};

// The bytes that one side of a stream lets the other send before it grants more.
class ReceiveWindow {
 public:
  // Bytes came. False if they are more than was granted: the peer breaks the protocol.
  [[nodiscard]] bool came(std::uint64_t bytes);
  // The reader took bytes. Returns the credit to grant now; 0 as long as it is too little to be worth a message. The
  // window doubles if most of it came within a round trip, and `may_grow`; a large one only while nothing queues.
  [[nodiscard]] std::uint64_t taken(std::uint64_t bytes, BootTime now, const RoundTrip& path, bool may_grow);
  [[nodiscard]] std::uint64_t size() const { return size_; }

 private:
  void adapt(BootTime now, const RoundTrip& path, bool may_grow);

  std::uint64_t size_ = k_window_first;
  std::uint64_t open_ = k_window_first;  // granted, and not come yet
  std::uint64_t held_ = 0;               // came, and the reader has not taken it
  std::uint64_t round_bytes_ = 0;        // that the reader took in this round
  std::optional<BootTime> round_began_;
};

}  // namespace gridctl::wire
