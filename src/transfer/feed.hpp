// SPDX-License-Identifier: Apache-2.0
// Reads and encodes chunks ahead of the thread that sends them, so that the link waits for neither disk nor codec.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <thread>

#include "os/mutex.hpp"
#include "store/tree.hpp"
#include "transfer/codecs.hpp"

namespace gridctl::transfer {

class Feed {
 public:
  // The feed calls both functions from its own thread.
  struct Source {
    std::function<std::optional<store::Chunk>()> next;
    std::function<Result<Bytes>(const Digest&)> read;
  };
  struct Item {
    store::Chunk chunk;
    Result<Parcel> parcel;  // an error is the last item
  };

  // `worth` and `clock` must outlive it. `modest`: yields to everything else on the machine.
  Feed(Source source, Codecs agreed, EncodingWorth& worth, const os::Clock& clock, bool modest);
  ~Feed();
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;

  // Returns items in the order of the source; nullopt at its end.
  [[nodiscard]] std::optional<Item> take();

 private:
  void run();
  bool offer(Item item);  // false when nobody takes any more

  Source source_;
  const Codecs agreed_;
  EncodingWorth& worth_;
  const os::Clock& clock_;
  os::Mutex mutex_;
  os::Condition changed_;
  std::deque<Item> ready_ GRIDCTL_GUARDED_BY(mutex_);
  std::uint64_t ready_bytes_ GRIDCTL_GUARDED_BY(mutex_) = 0;
  bool ended_ GRIDCTL_GUARDED_BY(mutex_) = false, stopped_ GRIDCTL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gridctl::transfer
