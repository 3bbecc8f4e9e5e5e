// SPDX-License-Identifier: Apache-2.0
// Reads and writes as much as a descriptor accepts at once; os::wait_ready waits in between.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::os {

[[nodiscard]] Result<void> set_nonblocking(int fd);

struct Moved {
  std::size_t bytes = 0;
  bool closed = false;   // the other side is gone (end of file, EPIPE, reset)
  bool blocked = false;  // nothing moved; wait_ready first
};
// Does one read or write on a non-blocking descriptor; a broken pipe is `closed`, never a signal for sockets.
[[nodiscard]] Result<Moved> read_now(int fd, std::span<std::byte> into);
[[nodiscard]] Result<Moved> write_now(int fd, ByteView bytes);

// Returns true once the other side has closed its end, even with bytes left to read.
[[nodiscard]] bool peer_has_gone(int fd);

}  // namespace gridctl::os
