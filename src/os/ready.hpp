// SPDX-License-Identifier: Apache-2.0
// Waiting for one descriptor with a deadline, and reading or writing what it takes at once.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::os {

enum class Direction { read, write };

// True when the descriptor is ready (or broken: the next read or write tells), false when the deadline has passed.
[[nodiscard]] Result<bool> wait_ready(int fd, Direction direction, BootTime deadline);
[[nodiscard]] Result<void> set_nonblocking(int fd);

struct Moved {
  std::size_t bytes = 0;
  bool closed = false;   // the other side is gone (end of file, EPIPE, reset)
  bool blocked = false;  // nothing moved; wait_ready first
};
// One read or write on a non-blocking descriptor; a broken pipe is `closed`, never a signal for sockets.
[[nodiscard]] Result<Moved> read_now(int fd, std::span<std::byte> into);
[[nodiscard]] Result<Moved> write_now(int fd, ByteView bytes);

}  // namespace gridctl::os
