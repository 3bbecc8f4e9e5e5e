// SPDX-License-Identifier: Apache-2.0
// Sends a tree to a host's cache: only missing chunks travel.
#pragma once

#include "store/chunk_store.hpp"
#include "store/tree.hpp"
#include "transfer/parallel_transfer.hpp"

namespace gridctl::transfer {

// have → put missing chunks, pipelined → the manifest as a blob under its root → seal → have again, to be sure that
// nothing was collected in the meantime. Chunks in the host's own snapshots of `job` (if any) do not travel. Returns
// only when everything is durable on the host. Safe to repeat; chunks sealed before a failure are not sent again.
// `chunks` is read by one thread at a time. After an error, the link is in an unknown state: close it.
[[nodiscard]] Result<TransferStats> push_tree(const Route& route, const store::Tree& tree, ByteView manifest,
                                              store::ChunkReader& chunks, const os::Clock& clock,
                                              const Progress& progress = {}, const JobId& job = {});

}  // namespace gridctl::transfer
