// SPDX-License-Identifier: Apache-2.0
// gridctl-gpubench as a child of the agent: put beside it, started, spoken with in lines, killed.
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

// Lines of the helper: it awaits the next order, it has ended well, a device begins.
inline constexpr std::string_view k_helper_ready = "ready", k_helper_done = "done", k_helper_device = "device";

// The helper's own binary, carried inside the agent.
[[nodiscard]] std::string_view embedded_gpubench();
// Its path on this host; written there first where it is missing or other than ours.
[[nodiscard]] Result<os::Path> install_gpubench(const os::Path& home);

// One line of the helper into the stage; what is none of its words is ignored. Pure.
void take_line(wire::BenchStage& stage, std::string_view line);
// The error of a line "error CODE TEXT".
[[nodiscard]] Error error_of_line(std::string_view line);

class HelperProcess {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HelperProcess>> start(const std::vector<std::string>& argv);
  ~HelperProcess();  // kills it with all it started
  HelperProcess(const HelperProcess&) = delete;
  HelperProcess& operator=(const HelperProcess&) = delete;

  [[nodiscard]] Result<void> send(std::string_view line);
  // The next line without its end. timed_out when none comes until then: a driver that hangs; host_unreachable at the
  // end of its output.
  [[nodiscard]] Result<std::string> receive(BootTime deadline, os::Clock& clock);

 private:
  HelperProcess() = default;
  int pid_ = -1;
  os::Fd to_, from_;
  std::string buffer_;
};

}  // namespace gridctl::agent
