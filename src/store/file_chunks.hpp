// SPDX-License-Identifier: Apache-2.0
// Reads chunks from files whose trees are known, such as snapshots. Several threads may read at once.
#pragma once

#include <deque>
#include <unordered_map>

#include "os/files.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

class FileChunks : public ChunkReader {
 public:
  // Adds the chunks of a tree whose files are below `directory`. Skips files that are missing or have another size than
  // in the tree.
  void add(os::Fd directory, Tree tree);
  [[nodiscard]] bool has(const Digest& digest) const { return places_.contains(digest); }
  // Returns not_found for an unknown chunk, and checkpoint_damaged when the file no longer holds it.
  [[nodiscard]] Result<Bytes> read(const Digest& digest) override;
  // Lets the empty file `to_fd` share the extents of a file that should have the same content. Returns false where
  // there is no such file or the file system cannot share. The caller must verify the content.
  [[nodiscard]] bool share(const Entry& entry, int to_fd) const;

 private:
  struct Source {
    os::Fd directory;
    Tree tree;
  };
  struct Place {
    const Source* source;
    const Entry* entry;
    std::uint64_t offset;
    std::uint32_t size;
  };
  std::deque<Source> sources_;
  std::unordered_map<Digest, Place> places_;
};

// Reads from `first`, and from `second` the chunks that `first` lacks or has damaged. Both must outlive this object.
class EitherReader : public ChunkReader {
 public:
  EitherReader(ChunkReader& first, ChunkReader& second) : first_(first), second_(second) {}
  [[nodiscard]] Result<Bytes> read(const Digest& digest) override;

 private:
  ChunkReader& first_;
  ChunkReader& second_;
};

}  // namespace gridctl::store
