// SPDX-License-Identifier: Apache-2.0
// Runs the host's own tools (nvidia-smi, docker…), all at once, each under a deadline. A tool that is absent, hangs,
// fails or never stops printing gives an answer that reports it; nothing here is an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::probe {

inline constexpr Duration k_tool_deadline = std::chrono::seconds{5};  // nvidia-smi without persistence needs 2 to 3 s
inline constexpr std::size_t k_tool_output_max = 1u << 20;            // bytes kept; 16 GPUs need 100 KiB in JSON

struct ToolCall {
  std::vector<std::string> argv;  // argv[0] is a bare name
};

struct ToolAnswer {
  std::string tool;  // argv[0]
  bool found = false;
  bool answered = false;  // it ran to its end in time, whatever its exit code
  int exit_code = -1;
  std::string out, err;
  std::string problem;  // why there is no answer, one line: "nvidia-smi: no answer within 5s"
  [[nodiscard]] bool ok() const { return answered && exit_code == 0; }
};

struct Toolbox {
  // Holds the places to look, in this order; nullopt = PATH and then the places where vendors install.
  std::optional<std::vector<os::Path>> directories;
  Duration deadline = k_tool_deadline;
  std::size_t output_max = k_tool_output_max;
};

[[nodiscard]] std::optional<os::Path> find_tool(const Toolbox& toolbox, const std::string& name);
[[nodiscard]] ToolAnswer ask_tool(const Toolbox& toolbox, const ToolCall& call);
// Returns the answers in the order of the calls.
[[nodiscard]] std::vector<ToolAnswer> ask_tools(const Toolbox& toolbox, const std::vector<ToolCall>& calls);

}  // namespace gridctl::probe
