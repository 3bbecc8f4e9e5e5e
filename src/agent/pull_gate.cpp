// SPDX-License-Identifier: Apache-2.0
#include "agent/pull_gate.hpp"

#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <thread>
#include <vector>

#include "agent/egress.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/address.hpp"
#include "os/files.hpp"
#include "os/listener.hpp"
#include "os/net.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_gate_head_max = 16 * 1024;
constexpr Duration k_gate_head_wait = std::chrono::seconds{20}, k_gate_connect_wait = std::chrono::seconds{30};
constexpr int k_gate_quiet_ms = 5 * 60 * 1000;  // a tunnel that is silent for so long ends
constexpr int k_tunnels_most = 64;              // at once; an engine fetches a few layers side by side
constexpr std::string_view k_gate_opened = "HTTP/1.1 200 Connection established\r\n\r\n";
constexpr std::string_view k_gate_refused = "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
constexpr std::string_view k_gate_failed = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

bool send_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    pollfd waiting{fd, POLLOUT, 0};
    if (::poll(&waiting, 1, k_gate_quiet_ms) <= 0) return false;
  }
  return true;
}

// Passes the available bytes from one side to the other. Returns false if that side has ended.
bool pass_some(int from, int to) {
  std::array<char, 64 * 1024> piece{};
  const ssize_t got = ::recv(from, piece.data(), piece.size(), MSG_DONTWAIT);
  if (got > 0) return send_whole(to, {piece.data(), static_cast<std::size_t>(got)});
  return got < 0 && (errno == EAGAIN || errno == EINTR);
}

void tunnel(int one, int other) {
  for (;;) {
    pollfd waiting[] = {{one, POLLIN, 0}, {other, POLLIN, 0}};
    if (::poll(waiting, 2, k_gate_quiet_ms) <= 0) return;
    if (waiting[0].revents != 0 && !pass_some(one, other)) return;
    if (waiting[1].revents != 0 && !pass_some(other, one)) return;
  }
}

std::string read_head(int fd, os::Clock& clock) {
  std::string head;
  const BootTime until = clock.boot() + k_gate_head_wait;
  while (head.size() < k_gate_head_max && head.find("\r\n\r\n") == std::string::npos && clock.boot() < until) {
    pollfd waiting{fd, POLLIN, 0};
    if (::poll(&waiting, 1, 1000) <= 0) continue;
    std::array<char, 4096> piece{};
    const ssize_t got = ::recv(fd, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return {};
    if (got > 0) head.append(piece.data(), static_cast<std::size_t>(got));
  }
  return head;
}

// Resolves the name once, and connects to the checked address.
os::Fd connect_publicly(const GateTarget& target, std::string_view& answer, os::Clock& clock) {
  answer = k_gate_failed;
  const BootTime until = clock.boot() + k_gate_connect_wait;
  const auto found = os::numeric_addresses(target.host, until, clock);
  if (!found) return {};
  for (const std::string& address : *found) {
    if (os::address_kind(address) == os::AddressKind::internet && !is_near(address)) continue;
    const std::string line = "gridctl: the image or its registry is at " + sanitize(target.host, 200) + " (" + address +
                             "), an address in this machine's own network; refused\n";
    [[maybe_unused]] const auto told = ::write(STDERR_FILENO, line.data(), line.size());
    answer = k_gate_refused;
    return {};
  }
  for (const std::string& address : *found)
    if (auto connected = os::connect_tcp(address, target.port, until, clock)) {
      answer = k_gate_opened;
      return std::move(*connected);
    }
  return {};
}

void serve_tunnel(const os::Fd& client, os::Clock& clock) {
  const std::string head = read_head(client.get(), clock);
  const std::size_t end = head.find("\r\n\r\n");
  const auto target = end == std::string::npos ? std::nullopt : parse_tunnel_request(std::string_view(head).substr(0, end));
  if (!target) {
    (void)send_whole(client.get(), k_gate_refused);
    return;
  }
  std::string_view answer;
  const os::Fd there = connect_publicly(*target, answer, clock);
  if (!send_whole(client.get(), answer) || !there.valid()) return;
  if (send_whole(there.get(), std::string_view(head).substr(end + 4))) tunnel(client.get(), there.get());
}

// Serves until the process ends, together with the pulling process.
void serve_gate(const os::Fd& listener, os::Clock& clock) {
  static std::atomic<int> open = 0;
  for (;;) {
    pollfd waiting{listener.get(), POLLIN, 0};
    if (::poll(&waiting, 1, -1) < 0 && errno != EINTR) return;
    os::Fd client(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid() || open >= k_tunnels_most) continue;
    ++open;
    try {
      std::thread([client = std::move(client), &clock] {
        serve_tunnel(client, clock);
        --open;
      }).detach();
    } catch (const std::system_error&) {
      --open;
    }
  }
}

// Holds a message of one byte with room for one descriptor.
struct OneDescriptor {
  OneDescriptor() {
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = room.size();
  }
  OneDescriptor(const OneDescriptor&) = delete;
  OneDescriptor& operator=(const OneDescriptor&) = delete;
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> room{};
  msghdr message{};
};

bool send_descriptor(int socket, int fd) {
  OneDescriptor carrier;
  cmsghdr* head = CMSG_FIRSTHDR(&carrier.message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return ::sendmsg(socket, &carrier.message, MSG_NOSIGNAL) == 1;
}

os::Fd take_descriptor(int socket) {
  OneDescriptor carrier;
  if (::recvmsg(socket, &carrier.message, MSG_CMSG_CLOEXEC) != 1) return {};
  const cmsghdr* head = CMSG_FIRSTHDR(&carrier.message);
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return {};
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return os::Fd(fd);
}

bool raise_loopback() {
  const os::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  return socket.valid() && ::ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

int gate_fails(const char* what) {
  std::fprintf(stderr, "gridctl-agent: cannot close the network of the pull: %s: %s\n", what, std::strerror(errno));
  return 1;
}

// The child stays in the network of this machine.
[[noreturn]] void be_the_gate(const os::Fd& from, int parent, os::Clock& clock) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = ::open("/dev/null", O_RDWR);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(nothing, STDOUT_FILENO);
  const os::Fd listener = take_descriptor(from.get());
  if (::getppid() == parent && listener.valid()) serve_gate(listener, clock);
  ::_exit(1);
}

}  // namespace

std::optional<GateTarget> parse_tunnel_request(std::string_view head) {
  constexpr std::string_view k_verb = "CONNECT ", k_version = " HTTP/1.";
  head = head.substr(0, head.find('\r'));
  const std::size_t end = head.rfind(k_version);
  if (!head.starts_with(k_verb) || end == std::string_view::npos || end < k_verb.size()) return std::nullopt;
  const std::string_view place = head.substr(k_verb.size(), end - k_verb.size());
  const std::size_t colon = place.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = place.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(place.substr(colon + 1));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const bool plain = std::ranges::all_of(host, [](char c) { return c > ' ' && c < 0x7f && c != '/' && c != '@'; });
  if (host.empty() || host.size() > 255 || !plain || !port || *port == 0) return std::nullopt;
  return GateTarget{std::string(host), *port};
}

int run_gated(std::span<char* const> command, os::Clock& clock) {
  if (command.empty()) return 2;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return gate_fails("socketpair");
  const os::Fd here(ends[0]), there(ends[1]);
  const int self = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return gate_fails("fork");
  if (child == 0) be_the_gate(there, self, clock);
  if (::unshare(CLONE_NEWNET) != 0) return gate_fails("unshare");
  if (!raise_loopback()) return gate_fails("loopback");
  const auto listener = os::listen_local(0);
  if (!listener) return gate_fails("listen");
  if (!send_descriptor(here.get(), listener->fd.get())) return gate_fails("pass the socket");
  const std::string proxy = "http://127.0.0.1:" + std::to_string(listener->port);
  for (const char* name : {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"}) ::setenv(name, proxy.c_str(), 1);
  for (const char* name : {"NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"}) ::unsetenv(name);
  std::vector<char*> words(command.begin(), command.end());
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  return gate_fails(words[0]);
}

}  // namespace gridctl::agent
