// SPDX-License-Identifier: Apache-2.0
// Copies a tree to a directory of the user's: complete or absent, whatever kills the process.
#pragma once

#include <string_view>

#include "store/materialise.hpp"

namespace gridctl::store {

// This file marks a directory that a copy was filling: its content is incomplete.
inline constexpr std::string_view k_partial_mark = ".gridctl-partial";

// Works like materialise, and syncs. A new directory is built beside the target, as `.NAME.gridctl-partial`, and gets
// its name when it is complete. An existing empty directory keeps its inode (it may be a mount, or someone's working
// directory) and holds k_partial_mark while it is filled. The next copy to the same place takes over what a killed copy
// has left; while another is at work there: busy. `room` as in MaterialiseOptions.
[[nodiscard]] Result<void> copy_out(const Tree& tree, ChunkReader& chunks, const os::Path& directory,
                                    unsigned threads = 1, std::function<Result<void>(std::uint64_t)> room = {});

}  // namespace gridctl::store
