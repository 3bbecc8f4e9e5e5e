// SPDX-License-Identifier: Apache-2.0
// Checkpoints that lie ready as files, for attempts that may come to this host: gridctl-agent(7), STANDBY. One for each
// job of a controller, below HOME/standby. What has lain there through a boot, or was touched meanwhile, is not used.
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

  // From chunks that are here, in place of what the job had here; nothing is done when it is here already.
  // no_space when not twice its size and 1 GiB are free.
  [[nodiscard]] Result<void> make(const JobId& job, const Digest& root, store::ChunkReader& chunks);
  [[nodiscard]] Result<void> drop(const JobId& job);
  // Makes it the folder `into`, which must not exist; false when it is not here or cannot be trusted. What the job has
  // here is gone afterwards in either case. `scratch`: a free name on the same file system.
  [[nodiscard]] Result<bool> take(const JobId& job, const Digest& root, const os::Path& scratch, const os::Path& into);
  // Removes what nobody has asked for in k_standby_life, of all controllers, and drafts of processes that are gone.
  void sweep(WallTime now);

 private:
  [[nodiscard]] Result<os::Path> folder(const JobId& job) const;  // after checking the id

  os::Path all_;
  ControllerId controller_;
};

}  // namespace gridctl::agent
