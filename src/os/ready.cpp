// SPDX-License-Identifier: Apache-2.0
#include "os/ready.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.hpp"

namespace gridctl::os {
namespace {

constexpr std::int64_t k_wait_step_max_ms = 60'000;  // poll again at least so often: a sleeping machine moves BOOTTIME

Result<Moved> moved(ssize_t count, bool reading) {
  if (count > 0) return Moved{static_cast<std::size_t>(count), false, false};
  if (count == 0) return Moved{0, reading, false};
  switch (errno) {
    case EAGAIN:
    case EINTR: return Moved{0, false, true};
    case EPIPE:
    case ECONNRESET: return Moved{0, true, false};
    default: return errno_error(errno, reading ? "cannot read from a link" : "cannot write to a link");
  }
}

}  // namespace

Result<bool> wait_ready(int fd, Direction direction, BootTime deadline) {
  pollfd entry{fd, static_cast<short>(direction == Direction::read ? POLLIN : POLLOUT), 0};
  while (true) {
    const std::int64_t left_ns = (deadline - system_clock().boot()).count();
    const std::int64_t left_ms = std::clamp<std::int64_t>((left_ns + 999'999) / 1'000'000, 0, k_wait_step_max_ms);
    const int ready = ::poll(&entry, 1, static_cast<int>(left_ms));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return errno_error(errno, "cannot wait for a descriptor");
    if (left_ns <= 0) return false;
  }
}

Result<void> set_nonblocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0) return {};
  return errno_error(errno, "cannot make a descriptor non-blocking");
}

Result<Moved> read_now(int fd, std::span<std::byte> into) { return moved(::read(fd, into.data(), into.size()), true); }

Result<Moved> write_now(int fd, ByteView bytes) {
#ifdef MSG_NOSIGNAL
  const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0 || errno != ENOTSOCK) return moved(sent, false);
#endif
  return moved(::write(fd, bytes.data(), bytes.size()), false);
}

}  // namespace gridctl::os
