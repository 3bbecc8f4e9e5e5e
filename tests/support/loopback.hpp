// SPDX-License-Identifier: Apache-2.0
// A listening socket on 127.0.0.1 and its port (given by the kernel).
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::os {

[[nodiscard]] inline Result<std::pair<Fd, std::uint16_t>> listen_loopback() {
  Fd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (!fd.valid() || ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(fd.get(), 64) != 0 || ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return errno_error(errno, "cannot listen on 127.0.0.1");
  return std::pair{std::move(fd), static_cast<std::uint16_t>(ntohs(address.sin_port))};
}

}  // namespace gridctl::os
