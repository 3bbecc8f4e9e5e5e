// SPDX-License-Identifier: Apache-2.0
// Bringing a host's checkpoint into our store: nothing the host says is believed, all of it is checked.
#pragma once

#include <functional>

#include "store/chunk_store.hpp"
#include "store/tree.hpp"
#include "transfer/parallel_transfer.hpp"

namespace gridctl::transfer {

struct Pulled {
  store::Tree tree;
  Digest root;
  TransferStats stats;
};

// The limits that the caller sets for a host, which may lie.
struct PullGuard {
  // Whether a chunk that is here need not be asked for. Who learns which chunks we lack learns what other jobs have:
  // those of the same job, and what this host has had, tell it nothing. Empty: all.
  std::function<bool(const Digest&)> may_reuse = {};
  std::function<void(const Digest&)> came = {};  // a chunk has come from the host; by several threads
  // Asked with the bytes that are still to come, at the beginning and as they come; an error ends the pull.
  std::function<Result<void>(std::uint64_t)> room = {};
};

// manifest → root, limits and quota checked → get what our store lacks, pipelined, each chunk hashed → manifest put →
// seal → all chunks claimed once more. When it returns success, the checkpoint is whole and durable in `into` under
// `expected_root`. Resumable: chunks that came whole are not fetched again. `bytes_quota` 0 = none.
// The chunk that `earlier` has at the same position, if it is given, may serve to keep a chunk as a difference.
// After an error the link is in an unknown state: close it.
[[nodiscard]] Result<Pulled> pull_checkpoint(const Route& route, const wire::CheckpointRef& checkpoint,
                                             const Digest& expected_root, std::uint64_t bytes_quota,
                                             store::ChunkStore& into, const os::Clock& clock,
                                             const Progress& progress = {}, const store::Tree* earlier = nullptr,
                                             const PullGuard& guard = {});

}  // namespace gridctl::transfer
