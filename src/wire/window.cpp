// SPDX-License-Identifier: Apache-2.0
#include "wire/window.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::wire {

namespace {
constexpr Duration k_half = std::chrono::seconds{30};
// A busy machine answers some milliseconds late, without any queue.
constexpr Duration k_queue_min = std::chrono::milliseconds{20};
constexpr Duration k_round_min = std::chrono::milliseconds{2};
constexpr int k_idle_rounds = 4;  // a longer pause belongs to the program that sends, and says nothing about the window
}  // namespace

void RoundTrip::measured(Duration sample, BootTime now) {
  sample = std::max(sample, Duration{});
  if (!least_ || now - half_began_ >= k_half) {
    least_before_ = least_;
    least_.reset();
    half_began_ = now;
  }
  smooth_ = smooth_ ? (*smooth_ * 3 + sample) / 4 : sample;
  least_ = std::min(sample, least_.value_or(sample));
}

std::optional<Duration> RoundTrip::least() const {
  if (!least_ || !least_before_) return least_;
  return std::min(*least_, *least_before_);
}

bool RoundTrip::is_queueing() const {
  const std::optional<Duration> shortest = least();
  return shortest && *smooth_ - *shortest > std::max(*shortest / 2, k_queue_min);
}

bool ReceiveWindow::came(std::uint64_t bytes) {
  if (bytes > open_) return false;
  open_ -= bytes;
  held_ += bytes;
  return true;
}

std::uint64_t ReceiveWindow::taken(std::uint64_t bytes, BootTime now, const RoundTrip& path, bool may_grow) {
  held_ -= std::min(bytes, held_);
  round_bytes_ += bytes;
  adapt(now, path, may_grow);
  if (size_ < open_ + held_ + size_ / 4) return 0;
  const std::uint64_t granted = size_ - open_ - held_;
  open_ = size_ - held_;
  return granted;
}

// A round lasts as long as a present round trip: even on a machine that answers late, a full window is one round's
// bytes.
void ReceiveWindow::adapt(BootTime now, const RoundTrip& path, bool may_grow) {
  const Duration round = std::max(path.now().value_or(k_round_min), k_round_min);
  if (!round_began_) round_began_ = now;
  const Duration lasted = now - *round_began_;
  if (lasted < round) return;
  const std::uint64_t bytes = std::exchange(round_bytes_, 0);
  round_began_ = now;
  if (lasted > round * k_idle_rounds) return;
  const auto per_round = static_cast<std::uint64_t>(static_cast<double>(bytes) * (seconds(round) / seconds(lasted)));
  const bool may_queue = path.is_queueing();
  if (may_queue && size_ > k_window_usual) size_ = std::max(size_ - size_ / 8, k_window_usual);
  else if (may_grow && per_round >= size_ / 3 * 2)
    size_ = std::min(size_ * 2, may_queue || size_ < k_window_usual ? k_window_usual : k_window_max);
}

}  // namespace gridctl::wire
