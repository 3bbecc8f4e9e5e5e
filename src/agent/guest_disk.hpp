// SPDX-License-Identifier: Apache-2.0
// The share of the disk that the owner of a lent machine gives to the jobs of others: gridctl-lend(7), LIMITS.
#pragma once

#include <map>
#include <string>
#include <thread>

#include "agent/attempt_dir.hpp"
#include "os/mutex.hpp"
#include "os/process.hpp"
#include "wire/guest.hpp"

namespace gridctl::agent {

struct DiskUse {
  std::uint64_t bytes = 0;               // as du counts
  std::map<Path, std::uint64_t> attempts;  // of those, by the folder of the attempt
  std::map<Path, Path> hidden;           // folders that cannot be read, by the folder of their attempt
};
// Adds up what lies below the agent's home for guests: jobs, and what is kept for later ones. Takes as long as du.
[[nodiscard]] DiskUse measure_disk(const Path& agent_home);
// Keeps the total where processes that have no time to count find it.
void note_disk_use(const Path& agent_home, std::uint64_t bytes);
[[nodiscard]] std::uint64_t noted_disk_use(const Path& agent_home);
// Returns what jobs of a controller may still take of `free` bytes, by the use that was noted last.
[[nodiscard]] std::uint64_t free_for(const Path& agent_home, const ControllerId& controller, std::uint64_t free);
// Makes room for `more` in what guests may take, by removing chunks that nobody has used for long, and counts again.
// no_space: there is none. Without a limit there is room.
[[nodiscard]] Result<void> room_for_guest(const Path& agent_home, const wire::GuestTerms& terms, std::uint64_t more);

// Returns the bytes of files without a name that these processes hold open on the device of `folder`.
[[nodiscard]] std::uint64_t nameless_bytes(const std::vector<os::ProcessId>& processes, const Path& folder);

// Pure. Whether the running attempt `own` has to end because all together are above the limit: the largest that runs
// does. One that is larger but has ended is about to be fetched and removed; it counts against `own` only when `own`
// grows meanwhile beyond `allowed`.
struct DiskCase {
  std::uint64_t limit = 0, total = 0, own = 0, allowed = 0;
  std::uint64_t largest_running = 0, largest_ended = 0;  // of the others
};
[[nodiscard]] bool has_to_end(const DiskCase& now);

// Looks at the disk on a thread of its own while one attempt runs.
class DiskWatch {
 public:
  // `changed`: an eventfd, written to when `over` has something to say.
  DiskWatch(AttemptDir attempt, int payload_pid, int changed, os::Clock& clock);
  ~DiskWatch();
  DiskWatch(const DiskWatch&) = delete;
  DiskWatch& operator=(const DiskWatch&) = delete;

  // Why this attempt has to end; empty: it fits.
  [[nodiscard]] std::string over() const;

 private:
  void watch();
  [[nodiscard]] std::string look();

  const AttemptDir attempt_;
  const Path home_;
  const int pid_, changed_;
  os::Clock& clock_;
  std::uint64_t allowed_ = 0;  // what it may grow to while a larger one that has ended is there
  mutable os::Mutex mutex_;
  os::Condition wake_;
  bool ends_ GRIDCTL_GUARDED_BY(mutex_) = false;
  std::string over_ GRIDCTL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace gridctl::agent
