// SPDX-License-Identifier: Apache-2.0
#include "agent/enter.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <vector>

#include "agent/init_door.hpp"
#include "agent/process_tree.hpp"
#include "os/net.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"
#include "transfer/fd_link.hpp"
#include "wire/stream.hpp"

namespace gridctl::agent {

namespace {
constexpr std::size_t k_relay_bytes = 256 * 1024;  // that wait in each direction, at most
constexpr Duration k_allow_wait = std::chrono::seconds{5};

// Handles one direction: bytes that were read and could not be written yet.
struct Flow {
  int from, to;
  std::vector<std::byte> buffer = std::vector<std::byte>(k_relay_bytes);
  std::size_t begin = 0, end = 0;
  bool over = false;  // nothing more comes

  [[nodiscard]] bool wants_read() const { return !over && end < buffer.size(); }
  [[nodiscard]] bool wants_write() const { return begin < end; }
  // Returns false when everything has been passed on, or the receiver is gone.
  bool move() {
    if (wants_read()) {
      const auto got = os::read_now(from, std::span(buffer).subspan(end));
      over = !got || got->closed;
      if (!over) end += got->bytes;
    }
    while (wants_write()) {
      const auto put = os::write_now(to, ByteView(buffer).subspan(begin, end - begin));
      if (!put || put->closed) return false;
      if (put->blocked) break;
      begin += put->bytes;
    }
    if (begin == end) begin = end = 0;
    return !over || wants_write();
  }
};

Result<os::Fd> knock(const AttemptDir& attempt) {
  const Error absent = make_error(Code::not_found, "no process of this attempt runs here");
  const unsigned launch = newest_launch(attempt);
  if (launch == 0) return absent;
  const auto init = lock_holder(attempt.run(launch) / "lock");
  if (!init) return absent;
  // The job can put anything there, so only a socket on which its own init listens is used.
  const os::Fd door(::open((attempt.run(launch) / k_door).c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!door.valid() || ::fstat(door.get(), &info) != 0 || !S_ISSOCK(info.st_mode))
    return make_error(Code::unsupported,
                      "this attempt cannot be entered: an earlier gridctl started it, or its job removed the socket");
  TRY_ASSIGN(os::Fd inside, os::connect_local("/proc/self/fd/" + std::to_string(door.get())));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(inside.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.pid != init->pid)
    return make_error(Code::refused, "this attempt cannot be entered: its job replaced our socket with another");
  return inside;
}

Result<os::Fd> start_here() {
  int pair[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return errno_error(errno, "cannot make a socket");
  os::Fd ours(pair[0]);
  const os::Fd theirs(pair[1]);
  TRY_ASSIGN(const Path self, os::executable_path());
  os::SpawnOptions options;
  options.stdin_fd = theirs.get();
  options.new_session = true;
  TRY(os::spawn({self.string(), "inside"}, options));
  return ours;
}
}  // namespace

Result<os::Fd> enter(const std::optional<AttemptDir>& attempt) {
  wire::AllowRequest allow;
  os::Fd inside;
  if (attempt) {
    TRY_ASSIGN(const wire::AttemptSpec spec, read_spec(*attempt));
    if (const auto ports = spec.envs.find("GRIDCTL_FORWARD_PORTS"); ports != spec.envs.end())
      allow.ports = wire::parse_ports(ports->second);
    TRY_ASSIGN(inside, knock(*attempt));
  } else {
    TRY_ASSIGN(inside, start_here());
  }
  transfer::FdLink link(inside.get(), inside.get(), false);
  TRY(link.send({wire::FrameKind::request, 0, wire::encode(allow)}, os::system_clock().boot() + k_allow_wait));
  return inside;
}

void relay(int in, int out, os::Fd inside, const std::function<bool()>& goes_on) {
  constexpr int k_ask_ms = 1000;
  Flow down{in, inside.get()}, up{inside.get(), out};
  static_cast<void>(os::set_nonblocking(inside.get()));
  for (bool moves = true; moves;) {
    const auto events = [](bool wanted, short event) { return static_cast<short>(wanted ? event : 0); };
    std::array<pollfd, 3> waiting{
        pollfd{down.wants_read() ? in : -1, POLLIN, 0}, pollfd{up.wants_write() ? out : -1, POLLOUT, 0},
        pollfd{inside.get(),
               static_cast<short>(events(up.wants_read(), POLLIN) | events(down.wants_write(), POLLOUT)), 0}};
    if (::poll(waiting.data(), waiting.size(), goes_on ? k_ask_ms : -1) < 0 && errno != EINTR) return;
    if (goes_on && !goes_on()) return;
    const bool down_moves = down.move();  // both: what one has read last is still passed on
    moves = up.move() && down_moves;
  }
}

}  // namespace gridctl::agent
