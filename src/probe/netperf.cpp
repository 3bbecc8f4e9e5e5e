// SPDX-License-Identifier: Apache-2.0
#include "probe/netperf.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace gridctl::probe {

namespace {

constexpr std::size_t k_block = 256 * 1024;
constexpr std::size_t k_page = 4096;
constexpr double k_rate_agrees = 1.25;
constexpr std::size_t k_mark = 8;  // bytes at the beginning of a page

// Implements splitmix64 (Steele, Lea, Flood 2014): each number of the sequence from its index.
std::uint64_t mixed(std::uint64_t seed, std::uint64_t index) {
  std::uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::array<std::byte, k_mark> little_endian(std::uint64_t value) {
  std::array<std::byte, k_mark> bytes;
  for (std::size_t i = 0; i < k_mark; ++i) bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return bytes;
}

}  // namespace

Noise::Noise(std::uint64_t seed) : seed_(seed), block_(k_block) {
  for (std::size_t at = 0; at < k_block; at += k_mark)
    std::memcpy(block_.data() + at, little_endian(mixed(seed, at)).data(), k_mark);
}

// Calls visit(position in the caller's bytes, source bytes) for each run that lies in one mark or between two.
template <class Visit>
void Noise::advance(std::size_t count, Visit visit) {
  for (std::size_t done = 0; done < count;) {
    const std::size_t in_page = offset_ % k_page;
    std::size_t run = std::min(count - done, (in_page < k_mark ? k_mark : k_page) - in_page);
    if (in_page < k_mark) {
      const auto mark = little_endian(mixed(~seed_, offset_ / k_page));
      visit(done, ByteView(mark).subspan(in_page, run));
    } else {
      visit(done, ByteView(block_).subspan(offset_ % k_block, run));
    }
    done += run;
    offset_ += run;
  }
}

void Noise::fill(std::span<std::byte> into) {
  advance(into.size(),
          [&](std::size_t at, ByteView source) { std::memcpy(into.data() + at, source.data(), source.size()); });
}

bool Noise::matches(ByteView bytes) {
  bool same = true;
  advance(bytes.size(), [&](std::size_t at, ByteView source) {
    same = same && std::memcmp(bytes.data() + at, source.data(), source.size()) == 0;
  });
  return same;
}

void Tally::add(ByteView bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const std::size_t in_page = offset_ % k_page;
    const std::size_t run = std::min(bytes.size() - done, (in_page < k_mark ? k_mark : k_page) - in_page);
    if (in_page < k_mark)
      for (std::size_t i = 0; i < run; ++i)  // FNV-1a
        value_ = (value_ ^ static_cast<std::uint64_t>(bytes[done + i])) * 0x100000001b3;
    done += run;
    offset_ += run;
  }
}

RateSteps::RateSteps(std::uint64_t bytes_max, Duration time_max, Duration rtt)
    : bytes_max_(bytes_max), time_left_(time_max), rtt_(rtt) {}

std::optional<std::uint64_t> RateSteps::next() const {
  const std::uint64_t grown = last_ == 0 ? k_rate_first : std::min(last_ * k_rate_growth, k_rate_last);
  const std::uint64_t wanted = confirming_ ? last_ : grown;
  if (done_ || bytes_ + wanted > bytes_max_) return std::nullopt;
  const double expected_s = rate_ ? static_cast<double>(wanted) * 8 / *rate_ : 0;
  if (time_left_ <= Duration::zero() || expected_s > seconds(time_left_)) return std::nullopt;
  return wanted;
}

void RateSteps::took(std::uint64_t bytes, Duration elapsed) {
  const Duration net = std::max<Duration>(elapsed - rtt_, std::chrono::microseconds{1});
  const double rate = static_cast<double>(bytes) * 8 / seconds(net);
  const bool tells = net >= std::max<Duration>(k_rate_enough, rtt_ * k_rate_enough_rtts);
  bytes_ += bytes;
  time_left_ -= elapsed;
  done_ = last_ == k_rate_last || (confirming_ && tells && rate <= *rate_ * k_rate_agrees);
  // Steps that are too short to measure determine the rate only until a longer one does.
  rate_ = confirming_ ? std::max(rate, *rate_) : rate;
  confirming_ = tells;
  last_ = bytes;
}

void RttWindow::add(Duration rtt) {
  newest_.push_back(rtt);
  if (newest_.size() > k_kept) newest_.pop_front();
}

std::optional<Duration> RttWindow::smallest() const {
  if (newest_.empty()) return std::nullopt;
  return *std::ranges::min_element(newest_);
}

std::optional<Duration> RttWindow::median() const {
  if (newest_.empty()) return std::nullopt;
  std::vector<Duration> sorted(newest_.begin(), newest_.end());
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2), sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace gridctl::probe
