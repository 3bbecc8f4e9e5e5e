// SPDX-License-Identifier: Apache-2.0
// Transfers of trees and checkpoints as measurements that cost nothing, and the reason to measure nothing else
// meanwhile. Any thread.
#pragma once

#include <atomic>
#include <vector>

#include "base/ids.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/mutex.hpp"

namespace gridctl::control {

inline constexpr std::uint64_t k_telling_bytes = 1 << 20;  // a smaller transfer tells of round trips, not of the rate

class LinkMeter {
 public:
  struct Note {
    HostName host;
    bool to_host = false;
    std::uint64_t bytes = 0;
    Duration time{};  // of all of it, disks included: the link is at least this fast
  };
  [[nodiscard]] bool is_busy() const { return under_way_ > 0; }
  [[nodiscard]] std::vector<Note> take() {
    const os::MutexLock lock(mutex_);
    return std::move(notes_);
  }

  // One transfer, from its construction to moved() or its end.
  class Transfer {
   public:
    // `meter` may be null: then nothing is noted.
    Transfer(LinkMeter* meter, HostName host, bool to_host, os::Clock& clock)
        : meter_(meter), note_{std::move(host), to_host, 0, {}}, clock_(clock), began_(clock.boot()) {
      if (meter_ != nullptr) ++meter_->under_way_;
    }
    ~Transfer() {
      if (meter_ != nullptr) --meter_->under_way_;
    }
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;
    void moved(std::uint64_t bytes) {
      note_.bytes = bytes;
      note_.time = clock_.boot() - began_;
      if (meter_ != nullptr && bytes >= k_telling_bytes) meter_->keep(note_);
    }

   private:
    LinkMeter* meter_;
    Note note_;
    os::Clock& clock_;
    BootTime began_;
  };

 private:
  void keep(const Note& note) {
    const os::MutexLock lock(mutex_);
    if (notes_.size() < k_notes_max) notes_.push_back(note);
  }
  static constexpr std::size_t k_notes_max = 1000;  // if nobody took them
  std::atomic<int> under_way_{0};
  os::Mutex mutex_;
  std::vector<Note> notes_ GRIDCTL_GUARDED_BY(mutex_);
};

}  // namespace gridctl::control
