// SPDX-License-Identifier: Apache-2.0
// A directory becomes a tree in a store.
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

// Durable when it returns. `previous`: root of an earlier state in the same store; what has not changed since is
// quickly seen, and what has changed little is kept as a difference. It need not be readable. Chunks, threads and what
// is previous are no matter of `options`. usage when there is nothing in the directory.
[[nodiscard]] Result<StoredTree> store_tree(ChunkStore& chunks, const os::Path& directory, ScanOptions options,
                                            const std::optional<Digest>& previous);

}  // namespace gridctl::store
