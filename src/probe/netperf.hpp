// SPDX-License-Identifier: Apache-2.0
// Implements the parts of a link measurement at either end: incompressible data, proof of their arrival, the amount to
// send, and statistics of round trips. Pure; the sockets are elsewhere.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>

#include "base/bytes.hpp"
#include "base/time.hpp"

namespace gridctl::probe {

// Generates a stream of bytes that follows from its seed, so that the receiver of a known seed can check every one of
// them. It repeats a random block of 256 KiB (longer than the window of SSH's and TLS's compression) in which each page
// of 4 KiB begins with eight unique bytes.
class Noise {
 public:
  explicit Noise(std::uint64_t seed);
  void fill(std::span<std::byte> into);        // the next bytes
  [[nodiscard]] bool matches(ByteView bytes);  // these are the next bytes

 private:
  template <class Visit>
  void advance(std::size_t count, Visit visit);
  std::uint64_t seed_, offset_ = 0;
  Bytes block_;
};

// Folds the eight bytes at the beginning of each 4 KiB of a stream. If the seed of the Noise is secret, only the
// receiver of the stream can know the value.
class Tally {
 public:
  void add(ByteView bytes);
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t offset_ = 0, value_ = 0xcbf29ce484222325;
};

inline constexpr std::uint64_t k_rate_first = 64ull << 10;                 // bytes of the first step
inline constexpr std::uint64_t k_rate_growth = 4;                          // each is so many times the one before
inline constexpr std::uint64_t k_rate_last = 32ull << 20;                  // and the largest
inline constexpr Duration k_rate_enough = std::chrono::milliseconds{150};  // a step this long tells the rate,
inline constexpr int k_rate_enough_rtts = 10;                              // if it lasted so many round trips

// Decides how many bytes to send next: steps grow until one takes long enough to measure (TCP has found its pace, a
// burst of credit is used up); then the same amount is sent once more, because a machine that was briefly busy must not
// look like a slow link, and again while that gains more than a quarter. The fastest of the measurable steps counts.
class RateSteps {
 public:
  RateSteps(std::uint64_t bytes_max, Duration time_max, Duration rtt);
  [[nodiscard]] std::optional<std::uint64_t> next() const;
  // Takes a step's bytes, and the time from its first byte until its receipt was known; the rate leaves out one round
  // trip.
  void took(std::uint64_t bytes, Duration elapsed);
  [[nodiscard]] std::optional<double> bits_per_second() const { return rate_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  // in all

 private:
  std::uint64_t bytes_max_;
  Duration time_left_, rtt_;
  std::uint64_t bytes_ = 0, last_ = 0;
  bool done_ = false, confirming_ = false;
  std::optional<double> rate_;
};

// Holds the newest round trips of one link. Delay only adds, so the smallest is nearest to the distance, and the median
// is the delay that a message can expect.
class RttWindow {
 public:
  void add(Duration rtt);
  [[nodiscard]] std::size_t count() const { return newest_.size(); }
  [[nodiscard]] std::optional<Duration> smallest() const;
  [[nodiscard]] std::optional<Duration> median() const;

 private:
  static constexpr std::size_t k_kept = 32;
  std::deque<Duration> newest_;
};

}  // namespace gridctl::probe
