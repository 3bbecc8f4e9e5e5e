// SPDX-License-Identifier: Apache-2.0
#include "ssh/process_channel.hpp"

#include <array>
#include <csignal>
#include <mutex>

#include "os/net.hpp"
#include "os/ready.hpp"

namespace gridctl::ssh {

void keep_tail(std::string& tail, std::string_view more) {
  tail += more;
  if (tail.size() > k_stderr_kept) tail.erase(0, tail.size() - k_stderr_kept);
}

namespace {

constexpr Duration k_end_wait = std::chrono::seconds{5};          // from the end of stdout to the end of the child
constexpr Duration k_stop_wait = std::chrono::milliseconds{200};  // from TERM to KILL: ssh must stop its own proxies

}  // namespace

Result<std::unique_ptr<ProcessChannel>> ProcessChannel::open(const std::vector<std::string>& argv,
                                                             ProcessChannelOptions options, os::Clock& clock) {
  static std::once_flag once;
  std::call_once(once, os::ignore_broken_pipes);
  std::unique_ptr<ProcessChannel> channel{new ProcessChannel(std::move(options), clock)};
  TRY_ASSIGN(auto in, os::make_pipe());
  TRY_ASSIGN(auto out, os::make_pipe());
  TRY_ASSIGN(auto err, os::make_pipe());
  os::SpawnOptions spawn;
  spawn.stdin_fd = in.first.get();
  spawn.stdout_fd = out.second.get();
  spawn.stderr_fd = err.second.get();
  spawn.new_session = true;
  TRY_ASSIGN(channel->pid_, os::spawn(argv, spawn));
  channel->stdin_ = std::move(in.second);
  channel->stdout_ = std::move(out.first);
  channel->stderr_ = std::move(err.first);
  for (const os::Fd* fd : {&channel->stdin_, &channel->stdout_, &channel->stderr_}) TRY(os::set_nonblocking(fd->get()));
  // Our child keeps its pid until we wait for it, so both can fail only because it has ended.
  channel->process_ = os::identify(channel->pid_).value_or(os::ProcessId{});
  if (auto pidfd = os::open_pidfd(channel->process_)) channel->pidfd_ = std::move(pidfd).value();
  return channel;
}

ProcessChannel::~ProcessChannel() {
  stdin_.reset();
  stdout_.reset();
  stderr_.reset();
  if (pid_ > 0 && !status_) stop_child();
}

void ProcessChannel::stop_child() {
  if (const auto ended = has_ended(); !ended || *ended || process_.pid <= 1) return;
  const auto asked = os::send_signal(process_, SIGTERM);
  os::Poll poll{pidfd_.get(), {.read = true}, {}};
  if (asked && pidfd_.valid()) (void)os::wait_any({&poll, 1}, clock_->boot() + k_stop_wait, *clock_);
  if (const auto ended = has_ended(); !ended || *ended) return;
  (void)os::send_signal(process_, SIGKILL);
  (void)os::wait(pid_);
}

Result<bool> ProcessChannel::has_ended() {
  if (!status_) {
    TRY_ASSIGN(status_, os::try_wait(pid_));
  }
  return status_.has_value();
}

std::string_view ProcessChannel::read_stderr(std::span<std::byte> into) {
  if (stderr_ended_) return {};
  const auto moved = os::read_now(stderr_.get(), into);
  stderr_ended_ = !moved || moved->closed;  // closed only with the channel: a loop may be watching it
  return stderr_ended_ || moved->blocked ? std::string_view{} : as_text(ByteView{into}.first(moved->bytes));
}

void ProcessChannel::drain_stderr() {
  std::array<std::byte, 16 * 1024> buffer;
  for (std::size_t total = 0; total < k_stderr_turn_bytes_max;) {
    const std::string_view more = read_stderr(buffer);
    if (more.empty()) return;
    keep_tail(stderr_tail_, more);
    total += more.size();
  }
}

std::string ProcessChannel::take_stderr() {
  std::array<std::byte, 16 * 1024> buffer;
  return std::string(read_stderr(buffer));
}

Result<std::optional<std::size_t>> ProcessChannel::read(std::span<std::byte> into) {
  drain_stderr();
  if (closed_at_) return at_end();
  TRY_ASSIGN(const os::Moved moved, os::read_now(stdout_.get(), into));
  if (moved.blocked) return std::optional<std::size_t>{};
  if (!moved.closed) return std::optional{moved.bytes};
  closed_at_ = clock_->boot();
  return at_end();
}

// ssh reports a broken connection only by its exit status, which comes a moment after the end of its output.
Result<std::optional<std::size_t>> ProcessChannel::at_end() {
  TRY_ASSIGN(const bool ended, has_ended());
  if (!ended && clock_->boot() - *closed_at_ < k_end_wait) return std::optional<std::size_t>{};
  drain_stderr();
  if (ended && options_.judge) TRY(options_.judge(*status_, stderr_tail_));
  return std::optional<std::size_t>{0};
}

Result<std::optional<std::size_t>> ProcessChannel::write(ByteView bytes) {
  drain_stderr();
  GRIDCTL_CHECK(stdin_.valid());
  TRY_ASSIGN(const os::Moved moved, os::write_now(stdin_.get(), bytes));
  if (moved.blocked) return std::optional<std::size_t>{};
  if (!moved.closed) return std::optional{moved.bytes};
  if (const auto ended = has_ended(); ended && *ended && options_.judge) TRY(options_.judge(*status_, stderr_tail_));
  return make_error(Code::host_unreachable, "the command on " + options_.peer + " no longer reads");
}

std::vector<Watched> ProcessChannel::wants(bool output_pending) const {
  std::vector<Watched> watched;
  if (!closed_at_) watched.push_back({stdout_.get(), {.read = true}});
  if (closed_at_ && !status_ && pidfd_.valid()) watched.push_back({pidfd_.get(), {.read = true}});
  if (!stderr_ended_) watched.push_back({stderr_.get(), {.read = true}});
  if (output_pending && stdin_.valid()) watched.push_back({stdin_.get(), {.write = true}});
  return watched;
}

}  // namespace gridctl::ssh
