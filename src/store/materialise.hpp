// SPDX-License-Identifier: Apache-2.0
// From a tree to a directory that holds exactly it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "os/files.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

struct MaterialiseOptions {
  bool sync = false;              // fsync files and directories
  bool links_stay_inside = true;  // refuse other links (checkpoints); false for working directories and mounts
  std::string_view beside;        // a name in the directory that may be there, and is left alone
  unsigned threads = 1;           // more than one only with a ChunkReader that threads may share
  // Lets a new, empty file share the content of another that should be the same; false where that is not possible. What
  // was shared is read and verified, and written anew where it differs.
  std::function<bool(const Entry& entry, int fd)> share;
  // Whether the disk may take so many bytes more: asked before anything is made with Tree::written_bytes, and with 0
  // now and then while it is written. An error stops it.
  std::function<Result<void>(std::uint64_t more)> room;
};

// Writes the tree into `directory`, which must be missing or empty (else exists). Nothing outside of it is created or
// followed: files are opened strictly beneath it, links are made last. On failure the content is removed again; the
// directory itself stays when it was there.
[[nodiscard]] Result<void> materialise(const Tree& tree, ChunkReader& chunks, const os::Path& directory,
                                       const MaterialiseOptions& options = {});

}  // namespace gridctl::store
