// SPDX-License-Identifier: Apache-2.0
#include "lend/pace.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::lend {

namespace {

constexpr Duration k_ask_every = std::chrono::milliseconds{250};
constexpr double k_bucket_seconds = 0.2;  // a machine under load does not wake us in time
constexpr double k_bucket_least = 4096, k_piece_least = 1400;  // bytes
constexpr double k_ns = 1e9;

}  // namespace

Pace::Pace(PaceSource source, os::Clock& clock) : source_(std::move(source)), clock_(clock), filled_(clock.boot()), asked_(clock.boot()) {
  rate_ = source_(0, false);
}

void Pace::ask(BootTime now) {
  const std::int64_t ms = (now - asked_).count() / 1'000'000;
  if (now - asked_ < k_ask_every) return;
  rate_ = source_(sent_ * 1000 / static_cast<std::uint64_t>(ms), held_);
  asked_ = now;
  sent_ = 0;
  held_ = false;
}

std::size_t Pace::may_send(std::size_t wanted) {
  const BootTime now = clock_.boot();
  ask(now);
  again_.reset();
  const auto passed = static_cast<double>((now - std::exchange(filled_, now)).count());
  if (!rate_ || wanted == 0) return wanted;
  const auto rate = static_cast<double>(*rate_);
  const double most = std::max(rate * k_bucket_seconds, k_bucket_least);
  tokens_ = std::min(tokens_ + passed / k_ns * rate, most);
  const double least = std::min(static_cast<double>(wanted), k_piece_least);
  const auto allowed = tokens_ < least ? std::size_t{0} : std::min(wanted, static_cast<std::size_t>(tokens_));
  if (allowed == wanted) return allowed;
  held_ = true;
  if (allowed == 0) again_ = now + std::chrono::nanoseconds{static_cast<std::int64_t>((least - tokens_) / std::max(rate, 1.0) * k_ns) + 1};
  return allowed;
}

void Pace::sent(std::size_t bytes) {
  sent_ += bytes;
  if (rate_) tokens_ -= static_cast<double>(bytes);
}

}  // namespace gridctl::lend
