// SPDX-License-Identifier: Apache-2.0
#include "agent/inside.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "agent/init.hpp"
#include "agent/inside_files.hpp"
#include "agent/inside_program.hpp"
#include "agent/process_tree.hpp"
#include "base/text.hpp"
#include "transfer/socket_link.hpp"
#include "transfer/stream_hub.hpp"
#include "wire/stream.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_connect_wait = std::chrono::seconds{10};  // for a program whose queue of connections is full
constexpr Duration k_last_grace = std::chrono::milliseconds{100};  // between HUP and KILL at the end
constexpr Duration k_kill_look = std::chrono::milliseconds{10};
constexpr int k_kills_max = 300;  // looks: what cannot be killed ends with the job

// Holds a connection that the kernel is still establishing.
struct Connecting {
  os::Fd socket;
  os::Loop::Watch watch;
  os::Loop::Timer limit;
};

class Inside {
 public:
  explicit Inside(std::optional<InitPlan> plan)
      : plan_(std::move(plan)),
        link_(loop_, os::Fd(STDIN_FILENO)),
        hub_(loop_, os::system_clock(),
             {[this](const wire::Frame& frame) { link_.send(frame); }, [this] { return link_.queued_bytes(); }},
             transfer::StreamHub::Side::answerer),
        programs_(loop_, hub_, plan_) {
    link_.on_frame = [this](const wire::Frame& frame) { take(frame); };
    link_.on_room = [this] { hub_.flow(); };
    link_.on_closed = [this](const Error&) { loop_.stop(); };
    hub_.on_open = [this](std::uint32_t id, const wire::StreamOpen& request) { open(id, request); };
  }

  int run() {
    // A job that is being stopped waits for its own processes, not for these.
    const auto term = loop_.on_signal(SIGTERM, [this] { loop_.stop(); });
    loop_.run();
    end_all();
    return 0;
  }

 private:
  void take(const wire::Frame& frame) {
    Result<void> good;
    if (!allowed_) {
      Result<wire::AllowRequest> allow = wire::parse_allow(frame.payload);
      if (allow) allowed_ = std::move(allow->ports);
      else good = std::move(allow).error();
    } else {
      good = hub_.take(frame);
    }
    if (!good) loop_.stop();
  }

  void open(std::uint32_t id, const wire::StreamOpen& request) {
    Result<void> opened;
    switch (request.kind) {
      case wire::StreamKind::port: opened = open_port(id, request.port); break;
      case wire::StreamKind::exec: opened = programs_.start(id, request); break;
      case wire::StreamKind::status:
      case wire::StreamKind::list: opened = list(id, request); break;
      case wire::StreamKind::get: opened = get(id, request); break;
      case wire::StreamKind::put: opened = put(id, request); break;
    }
    if (!opened) hub_.reset(id, opened.error());
  }

  Result<void> open_port(std::uint32_t id, std::uint16_t port) {
    if (std::ranges::find(*allowed_, port) == allowed_->end())
      return make_error(Code::refused, "the job does not declare port " + std::to_string(port),
                        "add 'ports: [" + std::to_string(port) + "]' to its job file");
    os::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid()) return errno_error(errno, "cannot make a socket");
    const int on = 1;
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
      join_port(id, std::move(socket));
      return {};
    }
    if (errno != EINPROGRESS) return no_answer(port, errno);
    Connecting& connecting = connecting_[id];
    connecting.watch = loop_.watch(socket.get(), {false, true}, [this, id, port](os::Interest) { connected(id, port); });
    connecting.limit = loop_.after(k_connect_wait, [this, id, port] {
      connecting_.erase(id);
      hub_.reset(id, no_answer(port, ETIMEDOUT));
    });
    connecting.socket = std::move(socket);
    return {};
  }

  static Error no_answer(std::uint16_t port, int problem) {
    Error error = errno_error(problem, "nothing answers on port " + std::to_string(port) + " in the job");
    error.code = Code::host_unreachable;
    return error;
  }

  void connected(std::uint32_t id, std::uint16_t port) {
    const auto found = connecting_.find(id);
    if (found == connecting_.end()) return;
    os::Fd socket = std::move(found->second.socket);
    connecting_.erase(found);
    int problem = 0;
    socklen_t size = sizeof problem;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &problem, &size);
    if (problem != 0) return hub_.reset(id, no_answer(port, problem));
    join_port(id, std::move(socket));
  }

  void join_port(std::uint32_t id, os::Fd socket) {
    transfer::StreamEnds ends;
    ends.source = std::move(socket);
    ends.duplex = true;
    hub_.accept(id, {}, std::move(ends), {});
  }

  [[nodiscard]] os::Path path_of(const wire::StreamOpen& request) const {
    const os::Path base = plan_ ? plan_->work : os::home_directory();
    return request.path.empty() ? base : base / request.path;
  }

  Result<void> list(std::uint32_t id, const wire::StreamOpen& request) {
    TRY_ASSIGN(os::Fd listing, list_entries(path_of(request), request.kind == wire::StreamKind::list));
    transfer::StreamEnds ends;
    ends.source = std::move(listing);
    hub_.accept(id, {}, std::move(ends), {});
    return {};
  }

  Result<void> get(std::uint32_t id, const wire::StreamOpen& request) {
    TRY_ASSIGN(ReadFile file, open_to_read(path_of(request), request));
    transfer::StreamEnds ends;
    ends.source = std::move(file.fd);
    hub_.accept(id, {request.offset, file.bytes}, std::move(ends), {});
    return {};
  }

  Result<void> put(std::uint32_t id, const wire::StreamOpen& request) {
    const os::Path path = path_of(request);
    TRY_ASSIGN(os::Fd file, open_to_write(path, request));
    transfer::StreamEnds ends;
    ends.sink = std::move(file);
    transfer::StreamEvents events;
    events.sink_broken = [this, id, path] {
      hub_.reset(id, make_error(Code::no_space, "cannot write " + sanitize(path.string()) + ": the disk is full"));
    };
    events.received = [this, id, path, mode = request.mode] {
      const Result<void> complete = complete_write(path, mode);
      if (!complete) hub_.reset(id, complete.error());
    };
    hub_.accept(id, {request.offset, 0}, std::move(ends), std::move(events));
    return {};
  }

  // Ends everything that was started here, including what has left its session: as subreaper we are the parent of all
  // of it.
  static void end_all() {
    const auto left = [] { return os::descendants(::getpid()); };
    signal_each(left(), SIGHUP);
    if (!left().empty()) os::pause_for(k_last_grace);
    for (int look = 0; look < k_kills_max; ++look) {
      while (::waitpid(-1, nullptr, WNOHANG) > 0) {
      }
      const auto living = left();
      if (living.empty()) return;
      signal_each(living, SIGKILL);
      os::pause_for(k_kill_look);
    }
  }

  const std::optional<InitPlan> plan_;
  os::Loop loop_;
  transfer::SocketLink link_;
  transfer::StreamHub hub_;
  Programs programs_;
  std::optional<std::vector<std::uint16_t>> allowed_;  // ports, once the agent has said them
  std::map<std::uint32_t, Connecting> connecting_;
};
}  // namespace

int run_inside(std::span<char* const> arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  std::optional<InitPlan> plan;
  if (!arguments.empty()) {
    Result<InitPlan> parsed = parse_init(arguments);
    if (!parsed) return 2;
    plan = std::move(*parsed);
  }
  return Inside(std::move(plan)).run();
}

}  // namespace gridctl::agent
