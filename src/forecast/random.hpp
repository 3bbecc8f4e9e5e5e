// SPDX-License-Identifier: Apache-2.0
// Generates random numbers that are the same on every machine: no std distribution, no address, no clock.
#pragma once

#include <cmath>
#include <cstdint>

namespace gridctl::forecast {

class Random {
 public:
  // Mixes the seed, so that the streams of neighbouring seeds are not one shifted stream.
  explicit Random(std::uint64_t seed) : state_(mix(mix(seed + 0xD1B54A32D192ED03ull) ^ 0xA0761D6478BD642Full)) {}

  std::uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15ull); }  // splitmix64
  // [0, bound)
  std::uint64_t below(std::uint64_t bound) { return bound == 0 ? 0 : next() % bound; }
  // [low, high]
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(below(static_cast<std::uint64_t>(high - low) + 1));
  }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  bool chance(double probability) { return probability > 0 && unit() < probability; }
  double exponential(double mean) { return -mean * std::log1p(-unit()); }
  double normal() { return std::sqrt(-2 * std::log1p(-unit())) * std::cos(2 * 3.14159265358979323846 * unit()); }
  // Returns an independent stream: the numbers of one part do not shift those of another.
  Random fork() { return Random(next()); }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

}  // namespace gridctl::forecast
