// SPDX-License-Identifier: Apache-2.0
// Implements a channel to a local child process: the `ssh` program, or any command in tests.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/process.hpp"
#include "ssh/channel.hpp"

namespace gridctl::ssh {

struct ProcessChannelOptions {
  std::string peer;  // for messages
  // Called once when the child has closed its output and ended: read() returns its error instead of 0.
  std::function<Result<void>(const os::ExitStatus&, const std::string& stderr_tail)> judge;
};

class ProcessChannel : public Channel {
 public:
  // Spawns argv in its own session (no terminal to ask questions on) with pipes.
  [[nodiscard]] static Result<std::unique_ptr<ProcessChannel>> open(const std::vector<std::string>& argv,
                                                                    ProcessChannelOptions options, os::Clock& clock);
  ~ProcessChannel() override;

  Result<std::optional<std::size_t>> read(std::span<std::byte> into) override;
  Result<std::optional<std::size_t>> write(ByteView bytes) override;
  [[nodiscard]] bool flushed() const override { return true; }
  void close_write() override { stdin_.reset(); }
  [[nodiscard]] std::vector<Watched> wants(bool output_pending) const override;
  void keepalive(BootTime) override {}  // ServerAliveInterval does it
  [[nodiscard]] std::string stderr_tail() const override { return stderr_tail_; }
  [[nodiscard]] TransportKind transport() const override { return TransportKind::system; }
  [[nodiscard]] const std::string& peer() const override { return options_.peer; }

  // Returns the next bytes of stderr, up to 16 KiB, instead of adding them to stderr_tail(). Empty: there are no more
  // yet.
  [[nodiscard]] std::string take_stderr();
  void put_back_stderr(std::string_view last_taken) { keep_tail(stderr_tail_, last_taken); }  // some of it, its end
  [[nodiscard]] Result<bool> has_ended();
  [[nodiscard]] const os::ExitStatus& exit_status() const { return *status_; }  // REQUIRES: has_ended()

 private:
  ProcessChannel(ProcessChannelOptions options, os::Clock& clock) : options_(std::move(options)), clock_(&clock) {}
  [[nodiscard]] std::string_view read_stderr(std::span<std::byte> into);
  void drain_stderr();
  Result<std::optional<std::size_t>> at_end();
  void stop_child();

  ProcessChannelOptions options_;
  os::Clock* clock_;
  os::Fd stdin_, stdout_, stderr_, pidfd_;
  int pid_ = 0;
  os::ProcessId process_;
  bool stderr_ended_ = false;
  std::optional<os::ExitStatus> status_;
  std::optional<BootTime> closed_at_;  // when stdout ended
  std::string stderr_tail_;
};

}  // namespace gridctl::ssh
