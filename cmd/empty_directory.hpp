// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"

namespace gridctl::cmd {

// Files may be copied there: it does not exist, is empty, or holds what an earlier copy left unfinished. `exists`
// otherwise; `what` is copied "into a new directory only".
[[nodiscard]] Result<void> check_empty(const os::Path& directory, std::string_view what);

// What a host has made of few bytes may be terabytes as files. Copies the tree to the directory unless that would leave
// less than the reserve free: no_space then, before anything is written and while it is. `again`: the command, for a
// directory on another disk.
[[nodiscard]] Result<void> copy_into(const os::Path& directory, const store::Tree& tree, store::ChunkReader& chunks,
                                     unsigned threads, const std::string& again);

}  // namespace gridctl::cmd
