// SPDX-License-Identifier: Apache-2.0
#include "os/listener.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "os/net.hpp"

namespace gridctl::os {

namespace {
constexpr int k_backlog = 1024;
}

Result<Listener> listen_local(std::uint16_t port) {
  Listener listener{Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), 0};
  if (!listener.fd.valid()) return errno_error(errno, "cannot make a socket");
  const int on = 1;
  ::setsockopt(listener.fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.fd.get(), raw, size) != 0 || ::listen(listener.fd.get(), k_backlog) != 0) {
    if (errno == EADDRINUSE)
      return make_error(Code::exists, "another program uses port " + std::to_string(port) + " of this machine",
                        "choose another port, or 0 for any: 0:" + std::to_string(port));
    return errno_error(errno, "cannot listen on port " + std::to_string(port));
  }
  ::getsockname(listener.fd.get(), raw, &size);
  listener.port = ntohs(address.sin_port);
  return listener;
}

Result<Listener> listen_at(const Path& socket_path) {
  TRY_ASSIGN(const sockaddr_un address, local_address(socket_path));
  const std::string& text = socket_path.native();
  Listener listener{Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)), 0};
  if (!listener.fd.valid()) return errno_error(errno, "cannot make a socket");
  ::unlink(text.c_str());
  if (::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.fd.get(), k_backlog) != 0)
    return errno_error(errno, "cannot listen at " + text);
  return listener;
}

std::optional<Fd> accept_local(const Listener& listener) {
  Fd socket(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.valid()) return std::nullopt;
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

void end_sending(int socket_fd) { ::shutdown(socket_fd, SHUT_WR); }

void break_when_closed(int socket_fd) {
  const linger at_once{1, 0};
  ::setsockopt(socket_fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace gridctl::os
