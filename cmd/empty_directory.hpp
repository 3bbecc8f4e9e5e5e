// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::cmd {

// Checks that files may be copied there: it does not exist, is empty, or holds what an earlier copy left unfinished.
// `exists` otherwise; `what` is copied only into a new or empty directory.
[[nodiscard]] Result<void> check_empty(const os::Path& directory, std::string_view what);

// Copies the tree to the directory. A host can make terabytes of files from a few bytes, so this fails with no_space,
// before and during writing, if less than the reserve would stay free. `again`: the command, for a directory on another
// disk.
[[nodiscard]] Result<void> copy_into(const os::Path& directory, const store::Tree& tree, store::ChunkReader& chunks,
                                     unsigned threads, const std::string& again);

}  // namespace gridctl::cmd
