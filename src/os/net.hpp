// SPDX-License-Identifier: Apache-2.0
// Handles TCP connections, local sockets, and waiting for several descriptors at once. Deadlines are BootTimes; every
// wait is cut into slices of at most a second, so that a laptop notices its deadline immediately after sleep.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/loop.hpp"

struct sockaddr_un;

namespace gridctl::os {

struct Poll {
  int fd = -1;
  Interest want;
  Interest ready;  // filled in; an error or hang-up counts as ready for all that was wanted, and as read
};
// Waits until one is ready, or until `deadline`. Returns false if the deadline passed first.
[[nodiscard]] Result<bool> wait_any(std::span<Poll> polls, BootTime deadline, Clock& clock);
// Returns whether it is ready now, without waiting.
[[nodiscard]] bool is_writable(int fd);

void shut_down(int socket_fd);  // both ways; the peer and blocked calls notice

struct TcpOptions {
  Duration user_timeout = std::chrono::seconds{20};  // unacknowledged data for so long breaks the connection
  bool no_delay = true;
};
// Resolves and connects, trying all addresses in turn with a share of the time each; the descriptor is non-blocking.
// Every error names HOST:PORT: host_unreachable (no such name, refused, no route), timed_out.
[[nodiscard]] Result<Fd> connect_tcp(const std::string& host, std::uint16_t port, BootTime deadline, Clock& clock,
                                     const TcpOptions& options = {});
// Returns the numeric addresses of a host, at most 16. Fails like connect_tcp.
[[nodiscard]] Result<std::vector<std::string>> numeric_addresses(const std::string& host, BootTime deadline,
                                                                 Clock& clock);
// Fails if the path is too long for a socket.
[[nodiscard]] Result<sockaddr_un> local_address(const Path& socket_path);
[[nodiscard]] Result<Fd> connect_local(const Path& socket_path);  // AF_UNIX stream, non-blocking

}  // namespace gridctl::os
