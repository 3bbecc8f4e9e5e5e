// SPDX-License-Identifier: Apache-2.0
#include "probe/netperf.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace gridctl::probe::netperf_test {
namespace {
using namespace std::chrono_literals;

Bytes noise(std::uint64_t seed, std::size_t count, std::size_t piece) {
  Noise source(seed);
  Bytes bytes(count);
  for (std::size_t at = 0; at < count; at += piece)
    source.fill(std::span(bytes).subspan(at, std::min(piece, count - at)));
  return bytes;
}

TEST(Noise, IsTheSameInPiecesOfAnySize) {
  const Bytes whole = noise(7, 600'000, 600'000);
  EXPECT_EQ(noise(7, 600'000, 1), whole);
  EXPECT_EQ(noise(7, 600'000, 4099), whole);
  EXPECT_NE(noise(8, 600'000, 600'000), whole);
  Noise again(7);
  EXPECT_TRUE(again.matches(ByteView(whole).first(5)));
  EXPECT_TRUE(again.matches(ByteView(whole).subspan(5)));
}

TEST(Noise, NoticesOneWrongByte) {
  Bytes bytes = noise(7, 100'000, 100'000);
  bytes[70'001] ^= std::byte{1};
  Noise again(7);
  EXPECT_TRUE(again.matches(ByteView(bytes).first(70'000)));
  EXPECT_FALSE(again.matches(ByteView(bytes).subspan(70'000)));
}

TEST(Noise, HoldsAlmostEightBitsInEachByte) {
  const Bytes bytes = noise(1, 1 << 20, 1 << 20);
  std::array<double, 256> seen{};
  for (const std::byte byte : bytes) seen[std::to_integer<std::size_t>(byte)] += 1;
  double bits = 0;
  for (const double count : seen)
    if (count > 0)
      bits -= count / static_cast<double>(bytes.size()) * std::log2(count / static_cast<double>(bytes.size()));
  EXPECT_GT(bits, 7.99);
}

TEST(Tally, ProvesThatEveryPageCame) {
  const Bytes bytes = noise(7, 100'000, 100'000);
  Tally whole, pieces, short_one, other;
  whole.add(bytes);
  for (std::size_t at = 0; at < bytes.size(); at += 3)
    pieces.add(ByteView(bytes).subspan(at, std::min<std::size_t>(3, bytes.size() - at)));
  EXPECT_EQ(whole.value(), pieces.value());
  short_one.add(ByteView(bytes).first(90'000));
  EXPECT_NE(whole.value(), short_one.value());
  other.add(noise(8, 100'000, 100'000));
  EXPECT_NE(whole.value(), other.value());
}

// A link that carries so many bits a second, and answers after a round trip.
std::optional<double> measure(double bits_per_second, Duration rtt, RateSteps& steps) {
  while (const auto bytes = steps.next()) {
    const double s = static_cast<double>(*bytes) * 8 / bits_per_second;
    steps.took(*bytes, rtt + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)));
  }
  return steps.bits_per_second();
}

TEST(RateSteps, FindTheRateWithFewBytes) {
  struct Case {
    double rate;
    Duration rtt;
    double bytes_at_most;
  };
  for (const Case& one : {Case{1e6, 20ms, 140e3}, Case{20e6, 100ms, 10e6}, Case{100e6, 40ms, 40e6},
                          Case{1e9, 5ms, 60e6}, Case{25e9, 50us, 60e6}}) {
    RateSteps steps(64 << 20, 10s, one.rtt);
    EXPECT_NEAR(measure(one.rate, one.rtt, steps).value_or(0) / one.rate, 1, 0.01) << one.rate;
    EXPECT_LE(static_cast<double>(steps.bytes()), one.bytes_at_most) << one.rate;
  }
}

TEST(RateSteps, DoNotTakeABusyMachineForASlowLink) {
  RateSteps steps(64 << 20, 10s, 40ms);
  bool first = true;
  while (const auto bytes = steps.next()) {
    const double s = static_cast<double>(*bytes) * 8 / 100e6 + (first ? 0.7 : 0);
    steps.took(*bytes, 40ms + std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s)));
    first = false;
  }
  EXPECT_NEAR(steps.bits_per_second().value_or(0), 100e6, 1e6);
}

TEST(RateSteps, KeepWithinBytesAndTime) {
  RateSteps few(1 << 20, 10s, 0ms);
  EXPECT_TRUE(measure(1e9, 0ms, few));
  EXPECT_LE(few.bytes(), 1U << 20);
  RateSteps none(0, 10s, 0ms);
  EXPECT_FALSE(none.next());
  EXPECT_FALSE(none.bits_per_second());
  // The next step would take longer than the time that is left.
  RateSteps hasty(64 << 20, 1s, 90ms);
  EXPECT_NEAR(measure(1e6, 90ms, hasty).value_or(0), 1e6, 1e4);
  EXPECT_EQ(hasty.bytes(), k_rate_first);
}

TEST(RttWindow, KeepsTheNewest) {
  RttWindow window;
  EXPECT_FALSE(window.smallest());
  EXPECT_FALSE(window.median());
  window.add(1ms);
  for (int i = 0; i < 32; ++i) window.add(std::chrono::milliseconds{10 + i % 3});
  EXPECT_EQ(window.count(), 32U);
  EXPECT_EQ(window.smallest(), 10ms);
  EXPECT_EQ(window.median(), 11ms);
}

TEST(RateSteps, AStepThatTellsIsSentOnceMore) {
  RateSteps steps(1ull << 30, 100s, 0ms);
  EXPECT_EQ(steps.next(), k_rate_first);
  steps.took(k_rate_first, 149ms);
  EXPECT_EQ(steps.next(), k_rate_first * k_rate_growth) << "too short to tell";
  steps.took(k_rate_first * k_rate_growth, 150ms);
  EXPECT_EQ(steps.next(), k_rate_first * k_rate_growth) << "the same again";
  steps.took(k_rate_first * k_rate_growth, 149ms);
  EXPECT_EQ(steps.bytes(), 9 * k_rate_first);
  RateSteps slow(1ull << 30, 100s, 100ms);
  slow.took(k_rate_first, 1099ms);
  EXPECT_NE(slow.next(), k_rate_first) << "ten round trips are not over";
  RateSteps enough(1ull << 30, 100s, 100ms);
  enough.took(k_rate_first, 1100ms);
  EXPECT_EQ(enough.next(), k_rate_first);
  EXPECT_NEAR(enough.bits_per_second().value(), 64 * 1024 * 8, 1) << "less one round trip";
  RateSteps exact(k_rate_first, 100s, 0ms);
  EXPECT_EQ(exact.next(), k_rate_first);
  RateSteps short_of(k_rate_first - 1, 100s, 0ms);
  EXPECT_EQ(short_of.next(), std::nullopt);
  RateSteps no_time(1ull << 30, 0s, 0ms);
  EXPECT_EQ(no_time.next(), std::nullopt);
}

TEST(RateSteps, ATallyTellsEveryMarkAndNothingElse) {
  Bytes bytes(3 * 4096);
  const auto tally = [&](std::size_t piece) {
    Tally sum;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      sum.add(ByteView(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    return sum.value();
  };
  const std::uint64_t whole = tally(bytes.size());
  EXPECT_EQ(tally(7), whole);
  EXPECT_EQ(tally(4096), whole);
  bytes[8] = bytes[4095] = std::byte{1};
  EXPECT_EQ(tally(bytes.size()), whole) << "outside of the marks";
  bytes[4096 + 7] = std::byte{1};
  EXPECT_NE(tally(bytes.size()), whole);
}

}  // namespace
}  // namespace gridctl::probe::netperf_test
