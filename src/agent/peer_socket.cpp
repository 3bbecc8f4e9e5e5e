// SPDX-License-Identifier: Apache-2.0
#include "agent/peer_socket.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "os/ready.hpp"

namespace gridctl::agent {

namespace {

constexpr int k_backlog = 64;  // strangers may come before the peer

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

std::optional<SocketAddress> socket_address(const std::string& text, std::uint16_t port) {
  SocketAddress address;
  sockaddr_in four{};
  if (::inet_pton(AF_INET, text.c_str(), &four.sin_addr) == 1) {
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    std::memcpy(&address.storage, &four, address.length = sizeof four);
    return address;
  }
  sockaddr_in6 six{};
  if (::inet_pton(AF_INET6, text.c_str(), &six.sin6_addr) != 1) return std::nullopt;
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  std::memcpy(&address.storage, &six, address.length = sizeof six);
  return address;
}

std::string text_of(const sockaddr_storage& storage) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* raw = &reinterpret_cast<const sockaddr_in&>(storage).sin_addr;
  if (storage.ss_family == AF_INET6) raw = &reinterpret_cast<const sockaddr_in6&>(storage).sin6_addr;
  if (::inet_ntop(storage.ss_family, raw, text.data(), text.size()) == nullptr) return "";
  const std::string found = text.data();
  return found.starts_with("::ffff:") && found.find('.') != std::string::npos ? found.substr(7) : found;
}

Error connect_failure(int err) {
  if (err == ECONNREFUSED) return make_error(Code::host_unreachable, "connection refused");
  if (err == ETIMEDOUT) return make_error(Code::timed_out, "no answer");
  if (err == EHOSTUNREACH || err == ENETUNREACH) return make_error(Code::host_unreachable, "no route");
  return make_error(Code::host_unreachable, std::strerror(err));
}

void set_no_delay(int socket) {
  const int one = 1;
  (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);  // without it the figures are worse, no more
}

}  // namespace

PeerStream::PeerStream(os::Fd socket, std::string address, BootTime deadline, const os::Clock& clock)
    : socket_(std::move(socket)), address_(std::move(address)), deadline_(deadline), clock_(&clock) {
  set_no_delay(socket_.get());
}

Result<void> PeerStream::read(std::span<std::byte> into) {
  while (!into.empty()) {
    TRY_ASSIGN(const os::Moved moved, os::read_now(socket_.get(), into));
    if (moved.closed) return make_error(Code::host_unreachable, "the peer closed the connection");
    into = into.subspan(moved.bytes);
    if (!moved.blocked) continue;
    TRY_ASSIGN(const bool ready, os::wait_ready(socket_.get(), true, false, deadline_ - clock_->boot()));
    if (!ready) return make_error(Code::timed_out, "the peer did not send in time");
  }
  return {};
}

Result<void> PeerStream::write(ByteView bytes) {
  while (!bytes.empty()) {
    TRY_ASSIGN(const os::Moved moved, os::write_now(socket_.get(), bytes));
    if (moved.closed) return make_error(Code::host_unreachable, "the peer closed the connection");
    bytes = bytes.subspan(moved.bytes);
    if (!moved.blocked) continue;
    TRY_ASSIGN(const bool ready, os::wait_ready(socket_.get(), false, true, deadline_ - clock_->boot()));
    if (!ready) return make_error(Code::timed_out, "the peer did not receive in time");
  }
  return {};
}

Result<Connected> connect_numeric(const std::string& address, std::uint16_t port, BootTime deadline,
                                  const os::Clock& clock) {
  const std::optional<SocketAddress> to = socket_address(address, port);
  if (!to) return make_error(Code::usage, "not a numeric address");
  os::Fd fd{::socket(to->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) return connect_failure(errno);
  const BootTime began = clock.boot();
  if (::connect(fd.get(), to->get(), to->length) != 0) {
    if (errno != EINPROGRESS) return connect_failure(errno);
    TRY_ASSIGN(const bool ready, os::wait_ready(fd.get(), false, true, deadline - began));
    if (!ready) return connect_failure(ETIMEDOUT);
    int err = 0;
    socklen_t length = sizeof err;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &err, &length) != 0) err = errno;
    if (err != 0) return connect_failure(err);
  }
  return Connected{std::move(fd), clock.boot() - began};
}

Result<PeerListener> PeerListener::open(std::uint16_t port) {
  // One socket serves both families if the kernel has both.
  os::Fd fd{::socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  SocketAddress any;
  if (fd.valid()) {
    const int off = 0;
    (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    any.storage.ss_family = AF_INET6;
    any.length = sizeof(sockaddr_in6);
    reinterpret_cast<sockaddr_in6&>(any.storage).sin6_port = htons(port);
  } else {
    fd = os::Fd{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
    any.storage.ss_family = AF_INET;
    any.length = sizeof(sockaddr_in);
    reinterpret_cast<sockaddr_in&>(any.storage).sin_port = htons(port);
  }
  const int on = 1;  // leftovers of the epoch before are no listeners
  if (fd.valid()) (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!fd.valid() || ::bind(fd.get(), any.get(), any.length) != 0 || ::listen(fd.get(), k_backlog) != 0)
    return errno == EADDRINUSE ? make_error(Code::busy, "port " + std::to_string(port) + " is in use")
                               : errno_error(errno, "cannot listen for another host");
  SocketAddress bound;
  bound.length = sizeof bound.storage;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) != 0)
    return errno_error(errno, "cannot find out the listening port");
  const auto bound_port = bound.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound.storage).sin6_port
                                                        : reinterpret_cast<sockaddr_in&>(bound.storage).sin_port;
  return PeerListener(std::move(fd), ntohs(bound_port));
}

Result<std::optional<PeerStream>> PeerListener::accept(BootTime deadline, const os::Clock& clock) {
  for (;;) {
    TRY_ASSIGN(const bool ready, os::wait_ready(socket_.get(), true, false, deadline - clock.boot()));
    if (!ready) return std::optional<PeerStream>{};
    SocketAddress peer;
    peer.length = sizeof peer.storage;
    os::Fd fd{::accept4(socket_.get(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length,
                        SOCK_NONBLOCK | SOCK_CLOEXEC)};
    if (fd.valid()) return std::optional(PeerStream(std::move(fd), text_of(peer.storage), deadline, clock));
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      return errno_error(errno, "cannot accept another host's connection");
  }
}

}  // namespace gridctl::agent
