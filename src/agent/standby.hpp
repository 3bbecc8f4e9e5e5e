// SPDX-License-Identifier: Apache-2.0
// Keeps checkpoints ready as files, for attempts that may come to this host: gridctl-agent(7), STANDBY. One for each
// job of a controller, below HOME/standby. Files from before a boot, or touched in the meantime, are not used.
#pragma once

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"
#include "store/chunk_store.hpp"

namespace gridctl::agent {

inline constexpr Duration k_standby_life = std::chrono::hours{24};  // without a request that names it again

class Standby {
 public:
  Standby(os::Path home, ControllerId controller);

  // Makes it from chunks on this host, replacing the job's earlier one; does nothing if it is already there. no_space
  // unless twice its size and 1 GiB are free.
  [[nodiscard]] Result<void> make(const JobId& job, const Digest& root, store::ChunkReader& chunks);
  [[nodiscard]] Result<void> drop(const JobId& job);
  // Moves it to the folder `into`, which must not exist; returns false if it is missing or cannot be trusted. The job's
  // standby is gone afterwards in either case. `scratch`: a free name on the same file system.
  [[nodiscard]] Result<bool> take(const JobId& job, const Digest& root, const os::Path& scratch, const os::Path& into);
  // Removes, for all controllers, what was not used in k_standby_life, and drafts of processes that are gone.
  void sweep(WallTime now);

 private:
  [[nodiscard]] Result<os::Path> folder(const JobId& job) const;  // after checking the id
  [[nodiscard]] Result<void> room_for(std::uint64_t more) const;    // in what the owner of a lent machine lends

  os::Path all_;
  ControllerId controller_;
};

}  // namespace gridctl::agent
