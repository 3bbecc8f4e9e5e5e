// SPDX-License-Identifier: Apache-2.0
// Fetches a host's checkpoint into our store: nothing that the host says is trusted, everything is checked.
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

// Holds the caller's limits for a host, which may lie.
struct PullGuard {
  // Returns whether a chunk that is here need not be requested. A host that learns which chunks we lack learns what
  // other jobs have; chunks of the same job, and chunks that this host has had, reveal nothing. Empty: all.
  std::function<bool(const Digest&)> may_reuse = {};
  std::function<void(const Digest&)> came = {};  // a chunk has come from the host; by several threads
  // Called with the bytes that are still to come, at the beginning and as they arrive; an error ends the pull.
  std::function<Result<void>(std::uint64_t)> room = {};
};

// Pulls one checkpoint: manifest → root, limits and quota checked → get missing chunks, pipelined, each chunk hashed →
// manifest put → seal → all chunks claimed once more. When it returns success, the checkpoint is complete and durable
// in `into` under `expected_root`. Resumable: chunks received completely are not fetched again. `bytes_quota` 0 = none.
// With `earlier`, its chunk at the same position may be the base of a difference. After an error, the link is in an
// unknown state: close it.
[[nodiscard]] Result<Pulled> pull_checkpoint(const Route& route, const wire::CheckpointRef& checkpoint,
                                             const Digest& expected_root, std::uint64_t bytes_quota,
                                             store::ChunkStore& into, const os::Clock& clock,
                                             const Progress& progress = {}, const store::Tree* earlier = nullptr,
                                             const PullGuard& guard = {});

}  // namespace gridctl::transfer
