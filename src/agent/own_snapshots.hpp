// SPDX-License-Identifier: Apache-2.0
// Uses this host's own snapshots as a source of chunks: a restart here, or on a member that saved a part, receives only
// chunks that no snapshot holds. Snapshots outlive the folder of their attempt for a while, below HOME/snapshots.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "agent/attempt_dir.hpp"
#include "store/file_chunks.hpp"

namespace gridctl::agent {

inline constexpr Duration k_kept_life = std::chrono::hours{24};  // since the controller last asked for one of them

class OwnSnapshots {
 public:
  OwnSnapshots(Path home, ControllerId controller);

  // Opens every snapshot of the job on this host, those of attempts and kept ones.
  [[nodiscard]] Result<store::FileChunks> chunks_of(const JobId& job) const;
  // Removes from `missing` (indices into `chunks`) those that snapshots of the job hold. Snapshots written before the
  // last boot are read and hashed first, as far as `k_proof_time` allows, because a power cut may have damaged them.
  void find(const JobId& job, std::span<const Digest> chunks, std::vector<std::uint32_t>& missing);
  // Never offers the job's present snapshots again: one of them turned out to be damaged.
  void distrust(const JobId& job) const;

  // Moves the snapshots that the next attempt may start from out of the attempt's folder. REQUIRES: the job's lock.
  [[nodiscard]] Result<void> keep(const AttemptDir& attempt) const;
  void drop(const JobId& job) const;
  // Removes, for all controllers, snapshots not used in k_kept_life, and more while the disk is nearly full.
  void sweep(WallTime now) const;
  // Removes kept snapshots of other jobs, the oldest first, until `bytes` are free on the file system of HOME.
  void make_room(std::uint64_t bytes, const JobId& besides) const;

 private:
  [[nodiscard]] std::vector<Path> folders_of(const JobId& job) const;
  [[nodiscard]] std::vector<Path> kept_of(const JobId& job) const;

  Path home_, all_;
  ControllerId controller_;
  std::unordered_set<Digest> proven_;
};

}  // namespace gridctl::agent
