// SPDX-License-Identifier: Apache-2.0
#include "os/ready.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace gridctl::os {
namespace {

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

bool peer_has_gone(int fd) {
  pollfd end{fd, POLLRDHUP, 0};
  return ::poll(&end, 1, 0) > 0 && (end.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace gridctl::os
