// SPDX-License-Identifier: Apache-2.0
// Bringing a host's checkpoint into our store: nothing the host says is believed, all of it is checked.
#pragma once

#include "store/chunk_store.hpp"
#include "store/tree.hpp"
#include "transfer/stream.hpp"

namespace gridctl::transfer {

struct Pulled {
  store::Tree tree;
  Digest root;
  TransferStats stats;
};

// manifest → root, limits and quota checked → get what our store lacks, pipelined, each chunk hashed → manifest put →
// seal → all chunks claimed once more. When it returns success, the checkpoint is whole and durable in `into` under
// `expected_root`. Resumable: sealed chunks are not fetched again. `bytes_quota` 0 = none.
// After an error the link is in an unknown state: close it.
[[nodiscard]] Result<Pulled> pull_checkpoint(wire::Link& link, const wire::CheckpointRef& checkpoint,
                                             const Digest& expected_root, std::uint64_t bytes_quota,
                                             store::ChunkStore& into, const os::Clock& clock,
                                             const Progress& progress = {});

}  // namespace gridctl::transfer
