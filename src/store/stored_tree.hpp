// SPDX-License-Identifier: Apache-2.0
// Stores directories as trees, and reads trees from a store.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/chunk_store.hpp"
#include "store/scan.hpp"

namespace gridctl::store {

struct StoredTree {
  Digest root;
  Tree tree;
  std::vector<std::string> notes;  // what was left out and why; foreign text
  std::uint64_t stored_bytes = 0;  // what it added to the store
};

// Durable when it returns. `previous`: root of an earlier state in the same store; unchanged files are recognised
// quickly, and small changes are stored as differences. It need not be readable. Chunks, threads and the previous state
// in `options` are ignored. usage if the directory is empty.
[[nodiscard]] Result<StoredTree> store_tree(ChunkStore& chunks, const os::Path& directory, ScanOptions options,
                                            const std::optional<Digest>& previous);

// Reads the manifest at `root`.
[[nodiscard]] Result<Tree> tree_at(ChunkStore& chunks, const Digest& root);
// Stores the manifest of a tree whose chunks are stored already. Durable after the store is sealed. Returns its root.
[[nodiscard]] Result<Digest> put_tree(ChunkStore& chunks, const Tree& tree);

}  // namespace gridctl::store
