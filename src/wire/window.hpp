// SPDX-License-Identifier: Apache-2.0
// Computes how many bytes of a stream may be under way: the arithmetic of credit, and the round trip that it follows.
// Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace gridctl::wire {

// A new stream may carry this many bytes each way before anything was granted: its first data follow the request at
// once.
inline constexpr std::uint64_t k_window_first = 64 * 1024;
inline constexpr std::uint64_t k_window_usual = 384 * 1024;  // grown to whatever queues; 70 Mbit/s at 40 ms
inline constexpr std::uint64_t k_window_max = 4u << 20;      // 800 Mbit/s at 40 ms

// Measures the round trip of a conversation with pings that travel between the data.
class RoundTrip {
 public:
  void measured(Duration sample, BootTime now);
  // Returns the shortest of the last minute: without queueing delay. nullopt: nothing was measured yet.
  [[nodiscard]] std::optional<Duration> least() const;
  // Returns the present value, smoothed, with queueing delay. nullopt: nothing was measured yet.
  [[nodiscard]] std::optional<Duration> now() const { return smooth_; }
  // Returns true if the bytes under way fill queues: more of them would delay others and carry nothing more.
  [[nodiscard]] bool is_queueing() const;

 private:
  std::optional<Duration> smooth_, least_, least_before_;  // least: of this half minute, and of the one before it
  BootTime half_began_{};
};

// Tracks the bytes that one side of a stream lets the other send before it grants more.
class ReceiveWindow {
 public:
  // Notes received bytes. Returns false if they exceed the grant: the peer breaks the protocol.
  [[nodiscard]] bool came(std::uint64_t bytes);
  // Notes bytes taken by the reader. Returns the credit to grant now; 0 while it is too little to be worth a message.
  // The window doubles if most of it arrived within a round trip, and `may_grow`; a large one only while nothing
  // queues.
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
