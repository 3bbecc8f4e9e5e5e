// SPDX-License-Identifier: Apache-2.0
// Checkpoints from a store to a remote and back: packs first, then the record. One of these at a time for each remote and
// state directory; other state directories keep out of it by its mark.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <span>
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
// Bytes of packs of this checkpoint that are there, and of all; false stops (cancelled).
using CopyProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// Has somebody else put a pack there, who need not be believed: the remote is asked. Packs that it leaves are sent from
// here.
using PutElsewhere = std::function<void(const PackFile& pack)>;

struct RemoteLink {
  Backend* backend = nullptr;
  const StoreKey* key = nullptr;
  PutElsewhere elsewhere = {};
};

// Each pack is read and verified here before it is sent; a damaged one is set aside, which other checkpoints survive.
// When it returns, the remote has acknowledged all packs and the record. `there` is what a complete listing told, and is
// kept up to date. checkpoint_damaged when it is not whole here; then no record is written.
[[nodiscard]] Result<CopyStats> copy_checkpoint(ChunkStore& store, const RemoteLink& remote, RemoteListing& there,
                                                CopyRecord checkpoint, const CopyProgress& progress = {});
// The record goes; packs stay until prune_remote.
[[nodiscard]] Result<void> forget_copy(Backend& remote, RemoteListing& there, const RecordName& name);

struct RemotePruned {
  std::uint64_t packs_removed = 0, bytes_freed = 0;
};
// Removes packs that no record there needs. Every record must be readable, or nothing is removed.
[[nodiscard]] Result<RemotePruned> prune_remote(const RemoteLink& remote);

// Damaged or missing parts of a checkpoint here are taken from its copy. Every blob of it is read here first.
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
// Every record is read, every pack they need is looked for, and `share` of them (0 to 1, at least one), drawn by
// chance, is read and verified.
[[nodiscard]] Result<RemoteCheck> check_remote(const RemoteLink& remote, double share, const CopyProgress& progress = {});

}  // namespace gridctl::store
