// SPDX-License-Identifier: Apache-2.0
// A TCP port of this machine for its own programs, on 127.0.0.1, or a socket in a directory.
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
// 0: a port that is free. `exists` if another program has it.
[[nodiscard]] Result<Listener> listen_local(std::uint16_t port);
// A socket of AF_UNIX; what lies at the path is replaced. Who may connect is decided by the directory's mode.
[[nodiscard]] Result<Listener> listen_at(const Path& socket_path);
// The next connection that waits; non-blocking, as the socket that is returned.
[[nodiscard]] std::optional<Fd> accept_local(const Listener& listener);
// The peer sees the end of what we send on the socket; its own bytes still come.
void end_sending(int socket_fd);
// Closing it shows the peer that the connection broke, not that it ended.
void break_when_closed(int socket_fd);

}  // namespace gridctl::os
