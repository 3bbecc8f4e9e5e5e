// SPDX-License-Identifier: Apache-2.0
#include "transfer/feed.hpp"

#include <utility>

#include "os/priority.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::uint64_t k_ready_bytes_max = store::k_chunk_max;  // one large chunk ahead,
constexpr std::size_t k_ready_max = 256;                         // or so many small ones

std::uint64_t bytes_of(const Feed::Item& item) { return item.parcel ? item.parcel->bytes.size() : 0; }

}  // namespace

Feed::Feed(Source source, Codecs agreed, EncodingWorth& worth, const os::Clock& clock, bool modest)
    : source_(std::move(source)), agreed_(agreed), worth_(worth), clock_(clock) {
  thread_ = std::thread([this, modest] {
    if (modest) os::work_modestly();
    run();
  });
}

Feed::~Feed() {
  {
    const os::MutexLock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<Feed::Item> Feed::take() {
  const os::MutexLock lock(mutex_);
  while (!ended_ && ready_.empty()) changed_.wait(mutex_);
  if (ready_.empty()) return std::nullopt;
  Item item = std::move(ready_.front());
  ready_.pop_front();
  ready_bytes_ -= bytes_of(item);
  changed_.notify_all();
  return item;
}

bool Feed::offer(Item item) {
  {
    const os::MutexLock lock(mutex_);
    while (!stopped_ && (ready_bytes_ >= k_ready_bytes_max || ready_.size() >= k_ready_max)) changed_.wait(mutex_);
    if (stopped_) return false;
    ready_bytes_ += bytes_of(item);
    ready_.push_back(std::move(item));
  }
  changed_.notify_all();
  return true;
}

void Feed::run() {
  while (const std::optional<store::Chunk> chunk = source_.next()) {
    Result<Bytes> plain = source_.read(chunk->digest);
    const bool good = plain.has_value();
    Item item{*chunk, good ? Result<Parcel>(pack(*std::move(plain), agreed_, worth_, clock_))
                           : Result<Parcel>(std::move(plain).error())};
    if (!offer(std::move(item)) || !good) break;
  }
  const os::MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

}  // namespace gridctl::transfer
