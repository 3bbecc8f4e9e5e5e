// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "os/clock.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"

namespace gridctl::os {

namespace {
constexpr Duration k_exit_poll = std::chrono::milliseconds{20};  // how late an end is seen on kernels without pidfd

std::map<std::string, std::string> merged_environment(const std::map<std::string, std::string>& extra) {
  std::map<std::string, std::string> merged = extra;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      merged.emplace(std::string(text.substr(0, equals)), std::string(text.substr(equals + 1)));
  }
  return merged;
}

// Collects one output stream. Its descriptor is reset at the end of the stream.
struct Collected {
  Fd fd;
  std::string* into;
  std::size_t bytes_max;

  void drain() {
    std::array<char, 65536> buffer;
    while (fd.valid()) {
      const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return;
      if (got <= 0) return fd.reset();
      const std::size_t keep = std::min(static_cast<std::size_t>(got), bytes_max - std::min(bytes_max, into->size()));
      into->append(buffer.data(), keep);
    }
  }
};

// Runs until the child has ended or the deadline has passed (then the error), and collects output meanwhile.
Result<ExitStatus> follow(int pid, Collected& out, Collected& err, Duration timeout, const std::string& name) {
  const BootTime deadline = system_clock().boot() + timeout;
  const std::optional<ProcessId> identity = identify(pid);
  Fd ended;
  if (identity)
    if (Result<Fd> handle = open_pidfd(*identity); handle) ended = std::move(*handle);
  for (;;) {
    TRY_ASSIGN(const std::optional<ExitStatus> status, try_wait(pid));
    out.drain();
    err.drain();
    if (status) return *status;
    const Duration left = deadline - system_clock().boot();
    if (left.count() <= 0) {
      ::kill(-pid, SIGKILL);
      TRY(wait(pid));
      return make_error(Code::timed_out, "'" + name + "' did not end within " + format_duration(timeout) + ": killed");
    }
    const Duration step = ended.valid() ? left : std::min(left, k_exit_poll);
    const timespec limit{static_cast<time_t>(step.count() / 1'000'000'000),
                         static_cast<long>(step.count() % 1'000'000'000)};
    std::array<pollfd, 3> entries{{{out.fd.get(), POLLIN, 0}, {err.fd.get(), POLLIN, 0}, {ended.get(), POLLIN, 0}}};
    ::ppoll(entries.data(), entries.size(), &limit, nullptr);  // negative descriptors are skipped
  }
}

Result<std::pair<Fd, Fd>> output_pipe() {
  TRY_ASSIGN(auto ends, make_pipe());
  TRY(set_nonblocking(ends.first.get()));
  return ends;
}
}  // namespace

Result<RunOutcome> run(const std::vector<std::string>& argv, const RunOptions& options) {
  RunOutcome outcome;
  TRY_ASSIGN(auto out, output_pipe());
  TRY_ASSIGN(auto err, output_pipe());
  Fd input;
  if (!options.input.empty()) {  // no pipe: a child that does not read it could block or break us
    TRY_ASSIGN(input, memory_with(as_bytes(options.input)));
  }
  SpawnOptions how;
  how.stdin_fd = input.get();
  how.stdout_fd = out.second.get();
  how.stderr_fd = err.second.get();
  how.new_group = true;
  how.directory = options.directory;
  if (!options.environment_extra.empty()) how.environment = merged_environment(options.environment_extra);
  TRY_ASSIGN(const int pid, spawn(argv, how));
  out.second.reset();
  err.second.reset();
  Collected out_stream{std::move(out.first), &outcome.out, options.output_max};
  Collected err_stream{std::move(err.first), &outcome.err, options.output_max};
  TRY_ASSIGN(outcome.status, follow(pid, out_stream, err_stream, options.timeout, argv[0]));
  return outcome;
}

}  // namespace gridctl::os
