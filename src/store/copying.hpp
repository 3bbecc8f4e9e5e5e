// SPDX-License-Identifier: Apache-2.0
// Copies checkpoints from a store to a remote and back: packs first, then the record. Runs once at a time for each
// remote and state directory; the remote's mark keeps other state directories out.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/chunk_store.hpp"
#include "store/remote.hpp"

namespace gridctl::store {

struct CopyStats {
  std::uint64_t packs_sent = 0, bytes_sent = 0;  // what was there already is not counted
  std::uint64_t bytes_elsewhere = 0;             // of these, what somebody else sent
  bool operator==(const CopyStats&) const = default;
};
// Reports the bytes of this checkpoint's packs that are there, and of all; returning false stops (cancelled).
using CopyProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Lets another party put a pack there. It is not trusted: the remote is asked. Packs that it leaves are sent from here.
using PutElsewhere = std::function<void(const PackFile& pack)>;

struct RemoteLink {
  Backend* backend = nullptr;
  const StoreKey* key = nullptr;
  PutElsewhere elsewhere = {};
};

// Each pack is read and verified here before it is sent; a damaged one is set aside, which does not harm other
// checkpoints. When this returns, the remote has acknowledged all packs and the record. `there` is a complete listing,
// and is kept up to date. checkpoint_damaged if the checkpoint is incomplete here; then no record is written.
[[nodiscard]] Result<CopyStats> copy_checkpoint(ChunkStore& store, const RemoteLink& remote, RemoteListing& there,
                                                CopyRecord checkpoint, const CopyProgress& progress = {});
// Removes the record; packs stay until prune_remote.
[[nodiscard]] Result<void> forget_copy(Backend& remote, RemoteListing& there, const RecordName& name);

struct RemotePruned {
  std::uint64_t packs_removed = 0, bytes_freed = 0;
};
// Removes packs that no record at the remote needs. Every record must be readable, or nothing is removed.
[[nodiscard]] Result<RemotePruned> prune_remote(const RemoteLink& remote);

// Restores damaged or missing parts of a checkpoint here from its copy. Every blob of it is read here first.
struct Healed {
  std::uint64_t blobs = 0, bytes = 0;  // brought here
};
[[nodiscard]] Result<Healed> heal_checkpoint(ChunkStore& store, const RemoteLink& remote, const RecordName& name,
                                             const Digest& root);

struct RemoteCheck {
  std::uint64_t records = 0, packs = 0, packs_read = 0, bytes_read = 0;
  std::vector<std::string> findings;       // what is wrong, a line each
  std::set<RecordName> bad_records;        // cannot be restored as they are
  std::set<Digest> bad_packs;              // there, and not what they should be
  std::map<RecordName, CopyRecord> sound;  // all others
};
// Reads every record, looks for every pack that they need, and reads and verifies a random `share` of them (0 to 1, at
// least one).
[[nodiscard]] Result<RemoteCheck> check_remote(const RemoteLink& remote, double share, const CopyProgress& progress = {});

}  // namespace gridctl::store
