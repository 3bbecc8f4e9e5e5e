// SPDX-License-Identifier: Apache-2.0
// From a tree to a directory of the user's: whole or not there, whatever kills the process.
#pragma once

#include <string_view>

#include "store/materialise.hpp"

namespace gridctl::store {

// In a directory that a copy was filling: what lies there is not whole.
inline constexpr std::string_view k_partial_mark = ".gridctl-partial";

// Like materialise, synced. A new directory is made beside, as `.NAME.gridctl-partial`, and gets its name when it is
// whole. An empty one that is there keeps its inode (it may be a mount, or somebody's working directory) and holds
// k_partial_mark while it is filled. What a killed copy has left, the next one to the same place takes over; while
// another is at work there: busy. `room` as in MaterialiseOptions.
[[nodiscard]] Result<void> copy_out(const Tree& tree, ChunkReader& chunks, const os::Path& directory,
                                    unsigned threads = 1, std::function<Result<void>(std::uint64_t)> room = {});

}  // namespace gridctl::store
