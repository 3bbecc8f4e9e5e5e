// SPDX-License-Identifier: Apache-2.0
// Keeps the local copy of one attempt's output. An append names its offset in the attempt's complete output, so that
// the same bytes may arrive twice, and a gap left by the host's bounded ring is marked instead of hidden.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "control/follow/masks.hpp"
#include "os/files.hpp"

namespace gridctl::control {

inline constexpr std::uint64_t k_log_bytes_max = 1ull << 30;  // kept of one attempt; the rest is counted, not kept

// Returns where the next append starts: the number of output bytes seen so far, or 0 without a file.
[[nodiscard]] Result<std::uint64_t> log_next_offset(const os::Path& path);
// Appends to the log; concurrent callers (threads and processes) are safe. Masks the parts that `masks` finds, even if
// it begins in earlier bytes.
[[nodiscard]] Result<void> log_append(const os::Path& path, std::uint64_t offset, std::string_view bytes,
                                      const Masks& masks = {});
// Counts the bytes as seen, and writes a line instead of them.
[[nodiscard]] Result<void> log_leave_out(const os::Path& path, std::uint64_t offset, std::size_t bytes,
                                         std::string_view why);

// Returns the last lines, at most `lines` and 4 KiB; foreign text.
[[nodiscard]] Result<std::string> log_tail(const os::Path& path, std::size_t lines);

}  // namespace gridctl::control
