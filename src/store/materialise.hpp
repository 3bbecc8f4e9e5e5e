// SPDX-License-Identifier: Apache-2.0
// Writes a tree to a directory that then holds exactly that tree.
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
  // Lets a new, empty file share the content of another that should be the same; returns false if that is not possible.
  // Shared content is read and verified, and rewritten where it differs.
  std::function<bool(const Entry& entry, int fd)> share;
  // Checks whether the disk has room for this many more bytes: called with Tree::written_bytes before anything is
  // created, and with 0 from time to time during writing. An error stops the writing.
  std::function<Result<void>(std::uint64_t more)> room;
};

// Writes the tree into `directory`, which must be missing or empty (otherwise exists). Nothing outside it is created or
// followed: files are opened strictly beneath it, links are made last. Where the tree has an order of writing, the times
// of files and directories follow it, the newest at present, others a second apart. On failure, the content is removed again; an
// existing directory itself stays.
[[nodiscard]] Result<void> materialise(const Tree& tree, ChunkReader& chunks, const os::Path& directory,
                                       const MaterialiseOptions& options = {});

}  // namespace gridctl::store
