// SPDX-License-Identifier: Apache-2.0
#include "transfer/parallel_transfer.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::transfer {
namespace {

constexpr Duration k_warm_up = std::chrono::milliseconds{500};  // a new connection finds its speed
constexpr Duration k_measure = std::chrono::milliseconds{500};  // and is measured so long at least
constexpr std::uint64_t k_measure_bytes = 4ull << 20;           // over so many bytes at least
constexpr std::size_t k_growth = 4;                             // times the connections: logins far away take long
constexpr double k_gain_min = 1.15;                             // they must give so much, else they go again
constexpr double k_worth_seconds = 2;                           // a login takes about one
constexpr std::uint64_t k_share_min = 1 << 20;                  // less is not worth dividing between lanes

// If a login takes this long, one connection carries a window per round trip (libssh2's have 2 MiB), and a login takes
// about ten: with this many bytes, it pays to have several connections from the start.
constexpr Duration k_far = std::chrono::milliseconds{300};
constexpr std::uint64_t k_far_bytes = 64ull << 20;

bool only_the_link(const Error& error) { return error.code == Code::host_unreachable || error.code == Code::timed_out; }

}  // namespace

Conversation ParallelTransfer::conversation(wire::Link& link) {
  Conversation with{link, clock_};
  with.on_bytes = [this](std::size_t bytes) { moved(bytes); };
  return with;
}

Result<void> ParallelTransfer::run(std::vector<store::Chunk> chunks, const Lane& lane) {
  {
    const os::MutexLock lock(mutex_);
    chunks_ = std::move(chunks);
    taken_ = 0;
    bytes_left_ = 0;
    for (const store::Chunk& chunk : chunks_) bytes_left_ += chunk.size;
    stats_.bytes_to_send = stats_.bytes_sent + bytes_left_;
    lane_ = &lane;
    lanes_ = 1;
    settled_ = !route_.more;
    rate_before_ = 0;
    lanes_before_ = 1;
    surplus_ = 0;
    warm_at_ = mark_at_ = std::nullopt;
    if (!settled_ && route_.took >= k_far && bytes_left_ >= k_far_bytes) grow(k_growth - 1);
  }
  if (const Result<void> first = lane(conversation(route_.link), route_.codecs); !first) fail(first.error());
  std::vector<std::thread> helpers;
  {
    const os::MutexLock lock(mutex_);
    settled_ = true;  // whoever still works opens no more
    helpers.swap(threads_);
  }
  for (std::thread& helper : helpers) helper.join();
  const os::MutexLock lock(mutex_);
  if (failure_) return *failure_;
  return {};
}

std::vector<store::Chunk> ParallelTransfer::take(const wire::Link& lane, std::uint64_t bytes_max,
                                                 std::size_t count_max) {
  const os::MutexLock lock(mutex_);
  std::vector<store::Chunk> some;
  if (failure_ || is_surplus(lane)) return some;
  // Towards the end, all lanes get a share, so that none works alone for long.
  bytes_max = std::min(bytes_max, std::max(bytes_left_ / (2 * lanes_), k_share_min));
  std::uint64_t bytes = 0;
  while (taken_ < chunks_.size() && some.size() < count_max) {
    const store::Chunk& chunk = chunks_[taken_];
    if (!some.empty() && bytes + chunk.size > bytes_max) break;
    bytes += chunk.size;
    some.push_back(chunk);
    ++taken_;
  }
  bytes_left_ -= bytes;
  return some;
}

bool ParallelTransfer::is_surplus(const wire::Link& lane) {
  if (surplus_ == 0 || &lane == &route_.link) return false;
  --surplus_;
  return true;
}

Result<void> ParallelTransfer::tell() {
  const os::MutexLock lock(mutex_);
  if (failure_) return *failure_;
  if (!progress_ || progress_(stats_)) return {};
  return make_error(Code::cancelled, "transfer was stopped");
}

Result<void> ParallelTransfer::done(const store::Chunk& chunk) {
  {
    const os::MutexLock lock(mutex_);
    stats_.chunks_sent += 1;
    stats_.bytes_sent += chunk.size;
  }
  return tell();
}

void ParallelTransfer::fail(const Error& error) {
  const os::MutexLock lock(mutex_);
  if (!failure_) failure_ = error;
}

void ParallelTransfer::moved(std::size_t bytes) {
  const os::MutexLock lock(mutex_);
  stats_.bytes_moved += bytes;
  if (settled_) return;
  const std::optional<double> measured = rate(clock_.boot());
  if (!measured) return;
  if (opening_ == 0) weigh(*measured);
  else if (lanes_ - opening_ == lanes_before_) rate_before_ = *measured;  // none of those that come is there yet
}

std::optional<double> ParallelTransfer::rate(BootTime now) {
  if (!warm_at_) warm_at_ = now + k_warm_up;
  if (now < *warm_at_) return {};
  if (!mark_at_) {
    mark_at_ = now;
    mark_bytes_ = stats_.bytes_moved;
    return {};
  }
  const std::uint64_t bytes = stats_.bytes_moved - mark_bytes_;
  if (now - *mark_at_ < k_measure || bytes < k_measure_bytes) return {};
  const double rate = static_cast<double>(bytes) / seconds(now - *mark_at_);
  warm_at_ = mark_at_ = std::nullopt;
  return rate;
}

// Opens more connections as long as the last ones paid: the rate of one does not show whether a window, a lossy path or
// the link itself limits it.
void ParallelTransfer::weigh(double rate) {
  const bool paid = rate >= rate_before_ * k_gain_min;
  settled_ = !paid || lanes_ == k_lanes_max;
  if (!paid) surplus_ += lanes_ - lanes_before_;
  if (settled_ || static_cast<double>(bytes_left_) < rate * k_worth_seconds) return;
  rate_before_ = rate;
  grow(std::min(lanes_ * (k_growth - 1), k_lanes_max - lanes_));
}

void ParallelTransfer::grow(std::size_t count) {
  lanes_before_ = lanes_;
  lanes_ += count;
  opening_ += count;
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, lane = lane_] { help(*lane); });
}

void ParallelTransfer::help(const Lane& lane) {
  Result<BulkLink> link = route_.more();
  {
    const os::MutexLock lock(mutex_);
    if (--opening_ == 0) warm_at_ = mark_at_ = std::nullopt;
    if (!link) {
      --lanes_;
      settled_ = true;
      return;
    }
  }
  const Result<void> worked = lane(conversation(*link->link), link->codecs);
  if (worked) return;
  if (!only_the_link(worked.error())) return fail(worked.error());
  const os::MutexLock lock(mutex_);
  settled_ = true;
}

}  // namespace gridctl::transfer
