// SPDX-License-Identifier: Apache-2.0
// Opens a TCP port of this machine for its own programs, on 127.0.0.1, or a socket in a directory.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::os {

struct Listener {
  Fd fd;
  std::uint16_t port = 0;
};
// Listens on the port; 0: any free one. `exists` if another program uses it.
[[nodiscard]] Result<Listener> listen_local(std::uint16_t port);
// Listens on a socket of AF_UNIX and replaces an existing file at the path. The directory's mode decides who may
// connect.
[[nodiscard]] Result<Listener> listen_at(const Path& socket_path);
// Returns the next waiting connection; non-blocking, and so is the returned socket.
[[nodiscard]] std::optional<Fd> accept_local(const Listener& listener);
// Ends our side of the socket. The peer's own bytes still come.
void end_sending(int socket_fd);
// Makes closing show the peer that the connection broke, not that it ended.
void break_when_closed(int socket_fd);

}  // namespace gridctl::os
