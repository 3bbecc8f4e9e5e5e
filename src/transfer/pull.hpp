// SPDX-License-Identifier: Apache-2.0
// Bringing a host's checkpoint into our store: nothing the host says is believed, all of it is checked.
#pragma once

#include "store/chunk_store.hpp"
#include "store/tree.hpp"
#include "transfer/parallel_transfer.hpp"

namespace gridctl::transfer {

struct Pulled {
  store::Tree tree;
  Digest root;
  TransferStats stats;
};

// manifest → root, limits and quota checked → get what our store lacks, pipelined, each chunk hashed → manifest put →
// seal → all chunks claimed once more. When it returns success, the checkpoint is whole and durable in `into` under
// `expected_root`. Resumable: chunks that came whole are not fetched again. `bytes_quota` 0 = none.
// What `earlier` has in place of a chunk, if it is given, may serve to keep that chunk as a difference.
// After an error the link is in an unknown state: close it.
[[nodiscard]] Result<Pulled> pull_checkpoint(const Route& route, const wire::CheckpointRef& checkpoint,
                                             const Digest& expected_root, std::uint64_t bytes_quota,
                                             store::ChunkStore& into, const os::Clock& clock,
                                             const Progress& progress = {}, const store::Tree* earlier = nullptr);

}  // namespace gridctl::transfer
