// SPDX-License-Identifier: Apache-2.0
// Runs gridctl-gpubench as a child of the agent: installs it beside the agent, starts it, exchanges lines with it,
// kills it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "wire/bench.hpp"

namespace gridctl::agent {

// Name the helper's lines: it awaits the next order, it has ended well, a device begins.
inline constexpr std::string_view k_helper_ready = "ready", k_helper_done = "done", k_helper_device = "device";

// Returns the helper's own binary, which the agent carries inside.
[[nodiscard]] std::string_view embedded_gpubench();
// Returns its path on this host; first writes it if it is missing or differs from ours.
[[nodiscard]] Result<os::Path> install_gpubench(const os::Path& home);

// Reads one line of the helper into the stage; ignores unknown words. Pure.
void take_line(wire::BenchStage& stage, std::string_view line);
// Returns the error of a line "error CODE TEXT".
[[nodiscard]] Error error_of_line(std::string_view line);

class HelperProcess {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HelperProcess>> start(const std::vector<std::string>& argv);
  ~HelperProcess() { end(); }
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  void end();  // kills it with all it started; another thread may wait in receive
  [[nodiscard]] Result<void> send(std::string_view line);
  // Returns the next line without its end. timed_out if none arrives before the deadline (the driver hangs);
  // host_unreachable at the end of its output.
  [[nodiscard]] Result<std::string> receive(BootTime deadline, os::Clock& clock);

 private:
  HelperProcess() = default;
  int pid_ = -1;
  os::Fd to_, from_;
  std::string buffer_;
};

}  // namespace gridctl::agent
