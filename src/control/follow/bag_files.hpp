// SPDX-License-Identifier: Apache-2.0
// Manages the folder of a bag in the state directory: its journal (bag/journal.hpp) and the items of its tasks, one
// after another, each followed by a NUL.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/ids.hpp"
#include "control/follow/masks.hpp"
#include "os/files.hpp"

namespace gridctl::control {

inline constexpr std::uint64_t k_bag_items_bytes_max = 1ull << 30;

// Returns the journal from byte `from` on; empty: there is none.
[[nodiscard]] Result<std::string> read_bag_journal(const os::Path& folder, std::uint64_t from = 0);
// Durable when it returns. Creates the folder and the journal.
[[nodiscard]] Result<void> append_bag_journal(const os::Path& folder, std::string_view records);
[[nodiscard]] Result<void> replace_bag_journal(const os::Path& folder, std::string_view journal);
[[nodiscard]] Result<std::string> read_bag_items(const os::Path& folder);
[[nodiscard]] Result<void> write_bag_items(const os::Path& folder, std::string_view items);

// Returns the path of the output of all tasks on one worker: `output-WORKER-EPOCH`. Bytes are at the same offsets as on
// the host, because results refer to them by offset; bytes that the host dropped read as NULs.
[[nodiscard]] os::Path bag_output_path(const os::Path& folder, std::uint32_t worker, Epoch epoch);
[[nodiscard]] Result<std::uint64_t> bag_output_size(const os::Path& path);  // 0: there is none
[[nodiscard]] Result<void> append_bag_output(const os::Path& path, std::uint64_t offset, std::string_view bytes,
                                             const Masks& masks);

}  // namespace gridctl::control
