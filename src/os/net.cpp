// SPDX-License-Identifier: Apache-2.0
#include "os/net.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nss.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "os/mutex.hpp"

namespace gridctl::os {
namespace {

constexpr Duration k_slice = std::chrono::seconds{1};  // poll(2) counts no time asleep: look at the clock this often

int slice_ms(BootTime deadline, Clock& clock) {
  const Duration left = deadline - clock.boot();
  if (left <= Duration::zero()) return 0;
  const auto capped = std::min(left, k_slice);
  return static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(capped).count());
}

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  int family = 0;
};

struct Lookup {
  Mutex mutex;
  int error GRIDCTL_GUARDED_BY(mutex) = 0;
  std::vector<Address> addresses GRIDCTL_GUARDED_BY(mutex);
};

// A statically linked program must not load a module of the machine's libc, because the two would not fit.
void keep_to_own_modules() {
#ifdef GRIDCTL_STATIC_LIBC
  static const int once = __nss_configure_lookup("hosts", "files dns");
  (void)once;
#endif
}

void look_up(const std::string& host, std::uint16_t port, int flags, Lookup& into) {
  keep_to_own_modules();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  const MutexLock lock(into.mutex);
  into.error = error;
  if (error != 0) return;
  for (const addrinfo* item = list; item != nullptr && into.addresses.size() < 16; item = item->ai_next) {
    Address address;
    std::memcpy(&address.storage, item->ai_addr, item->ai_addrlen);
    address.length = item->ai_addrlen;
    address.family = item->ai_family;
    into.addresses.push_back(address);
  }
  freeaddrinfo(list);
}

// Resolves on its own thread, because getaddrinfo has no deadline; the thread is left behind if it takes too long. The
// pipe shows its end.
Result<std::vector<Address>> resolve(const std::string& host, std::uint16_t port, BootTime deadline, Clock& clock) {
  auto lookup = std::make_shared<Lookup>();
  look_up(host, port, AI_NUMERICHOST, *lookup);
  {
    const MutexLock lock(lookup->mutex);
    if (lookup->error == 0) return lookup->addresses;
    lookup->error = 0;
  }
  TRY_ASSIGN(auto done, make_pipe());
  std::thread([lookup, host, port, write_end = std::make_shared<Fd>(std::move(done.second))] {
    look_up(host, port, AI_ADDRCONFIG, *lookup);
    write_end->reset();
  }).detach();
  Poll poll_done{done.first.get(), {.read = true}, {}};
  TRY_ASSIGN(const bool finished, wait_any({&poll_done, 1}, deadline, clock));
  const std::string where = host + ":" + std::to_string(port);
  if (!finished) return make_error(Code::timed_out, "looking up the address of " + where + " took too long");
  const MutexLock lock(lookup->mutex);
  if (lookup->error != 0)
    return make_error(Code::host_unreachable,
                      "cannot find the address of " + where + ": " + gai_strerror(lookup->error));
  return lookup->addresses;
}

Error connect_error(const std::string& where, int err) {
  if (err == ECONNREFUSED)
    return make_error(Code::host_unreachable,
                      "cannot connect to " + where + ": connection refused (nothing listens on this port)");
  if (err == ETIMEDOUT) return make_error(Code::timed_out, "cannot connect to " + where + ": no answer");
  return make_error(Code::host_unreachable, "cannot connect to " + where + ": " + std::strerror(err));
}

Result<Fd> connect_address(const Address& address, const std::string& where, BootTime deadline, Clock& clock) {
  Fd fd{::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) return errno_error(errno, "cannot create a socket for " + where);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    if (errno != EINPROGRESS) return connect_error(where, errno);
    Poll poll_connected{fd.get(), {.write = true}, {}};
    TRY_ASSIGN(const bool ready, wait_any({&poll_connected, 1}, deadline, clock));
    if (!ready) return make_error(Code::timed_out, "cannot connect to " + where + ": no answer in time");
    int err = 0;
    socklen_t length = sizeof err;
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &err, &length) != 0) err = errno;
    if (err != 0) return connect_error(where, err);
  }
  return fd;
}

}  // namespace

Result<bool> wait_any(std::span<Poll> polls, BootTime deadline, Clock& clock) {
  std::vector<pollfd> fds;
  fds.reserve(polls.size());
  for (const Poll& item : polls)
    fds.push_back({item.fd, static_cast<short>((item.want.read ? POLLIN : 0) | (item.want.write ? POLLOUT : 0)), 0});
  for (;;) {
    const int timeout = slice_ms(deadline, clock);
    const int count = ::poll(fds.data(), fds.size(), timeout);
    if (count < 0 && errno != EINTR) return errno_error(errno, "cannot wait for descriptors");
    if (count > 0) break;
    if (count == 0 && timeout == 0) return false;
  }
  for (std::size_t i = 0; i < polls.size(); ++i) {
    const bool broken = (fds[i].revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
    polls[i].ready.read = (fds[i].revents & POLLIN) != 0 || broken;
    polls[i].ready.write = (fds[i].revents & POLLOUT) != 0 || (broken && polls[i].want.write);
  }
  return true;
}

bool is_writable(int fd) {
  pollfd item{fd, POLLOUT, 0};
  return ::poll(&item, 1, 0) == 1 && (item.revents & POLLOUT) != 0;
}

void shut_down(int socket_fd) { ::shutdown(socket_fd, SHUT_RDWR); }

Result<Fd> connect_tcp(const std::string& host, std::uint16_t port, BootTime deadline, Clock& clock,
                       const TcpOptions& options) {
  const std::string where = host + ":" + std::to_string(port);
  TRY_ASSIGN(const std::vector<Address> addresses, resolve(host, port, deadline, clock));
  std::optional<Error> failure;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const BootTime now = clock.boot();
    if (now >= deadline) break;
    // Limits the time for each address, so that a dead first one does not use up the time of the others.
    const Duration share = (deadline - now) / static_cast<std::int64_t>(addresses.size() - i);
    auto fd = connect_address(addresses[i], where, now + share, clock);
    if (fd) {
      const int one = options.no_delay ? 1 : 0;
      const auto timeout_ms =
          static_cast<unsigned>(std::chrono::duration_cast<std::chrono::milliseconds>(options.user_timeout).count());
      // Neither option is vital: a kernel without them still carries the connection.
      (void)::setsockopt(fd->get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
#ifdef TCP_USER_TIMEOUT
      (void)::setsockopt(fd->get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
#endif
      return fd;
    }
    failure = std::move(fd).error();
  }
  if (failure) return *std::move(failure);
  return make_error(Code::timed_out, "cannot connect to " + where + ": no time left");
}

Result<std::vector<std::string>> numeric_addresses(const std::string& host, BootTime deadline, Clock& clock) {
  TRY_ASSIGN(const std::vector<Address> addresses, resolve(host, 0, deadline, clock));
  std::vector<std::string> found;
  for (const Address& address : addresses) {
    char text[NI_MAXHOST];
    if (getnameinfo(reinterpret_cast<const sockaddr*>(&address.storage), address.length, text, sizeof text, nullptr, 0,
                    NI_NUMERICHOST) == 0)
      found.emplace_back(text);
  }
  return found;
}

Result<sockaddr_un> local_address(const Path& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& text = socket_path.native();
  if (text.size() >= sizeof address.sun_path)
    return make_error(Code::io, "the path of the socket " + text + " is too long");
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

Result<Fd> connect_local(const Path& socket_path) {
  TRY_ASSIGN(const sockaddr_un address, local_address(socket_path));
  Fd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  if (!fd.valid()) return errno_error(errno, "cannot create a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno_error(errno, "cannot connect to the socket " + socket_path.native());
  return fd;
}

}  // namespace gridctl::os
