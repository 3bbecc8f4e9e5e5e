// SPDX-License-Identifier: Apache-2.0
#include "control/reach/host_chunks.hpp"

namespace gridctl::control {

namespace {
constexpr std::size_t k_remembered_max = 1'000'000;    // 4 TB of chunks, 40 MB of memory
constexpr Duration k_memory = std::chrono::hours{24};  // as long as the store keeps what nothing refers to
}  // namespace

void HostChunks::add(const Digest& digest) {
  const os::MutexLock lock(mutex_);
  if (had_.size() >= k_remembered_max) had_.clear();  // they are fetched once more
  had_.insert(digest);
}

bool HostChunks::has(const Digest& digest) const {
  const os::MutexLock lock(mutex_);
  return had_.contains(digest);
}

void HostChunks::wasted(std::uint64_t bytes, BootTime now) {
  const os::MutexLock lock(mutex_);
  if (now > wasted_at_ + k_memory) wasted_ = 0;
  wasted_ += bytes;
  wasted_at_ = now;
}

Result<void> HostChunks::may_send(std::uint64_t bytes_max, BootTime now) const {
  const os::MutexLock lock(mutex_);
  if (wasted_ <= bytes_max || now > wasted_at_ + k_memory) return {};
  return make_error(Code::refused, "it has sent " + format_size(wasted_) +
                                       " that were no checkpoint; nothing more is fetched from it for a day");
}

}  // namespace gridctl::control
