// SPDX-License-Identifier: Apache-2.0
// The local copy of one attempt's output. Appends name the offset in the attempt's whole output, so that the same bytes
// may come twice, and a hole left by the host's bounded ring is marked instead of hidden.
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

// Where the next append should begin: bytes of output seen so far. 0 when there is no file.
[[nodiscard]] Result<std::uint64_t> log_next_offset(const os::Path& path);
// Safe against concurrent callers (threads and processes). What `masks` finds is masked in the file, also where it
// begins in what was appended before.
[[nodiscard]] Result<void> log_append(const os::Path& path, std::uint64_t offset, std::string_view bytes,
                                      const Masks& masks = {});
// Counts the bytes as seen, with a line instead of them.
[[nodiscard]] Result<void> log_leave_out(const os::Path& path, std::uint64_t offset, std::size_t bytes,
                                         std::string_view why);

// The last lines, at most `lines` and 4 KiB of them; foreign text.
[[nodiscard]] Result<std::string> log_tail(const os::Path& path, std::size_t lines);

}  // namespace gridctl::control
