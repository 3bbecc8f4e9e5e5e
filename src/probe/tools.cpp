// SPDX-License-Identifier: Apache-2.0
#include "probe/tools.hpp"

#include <array>

#include "os/process.hpp"
#include "probe/gather.hpp"

namespace gridctl::probe {
namespace {

// A command over SSH gets a minimal PATH; vendors install elsewhere.
constexpr std::array k_usual_places{
    "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin", "/opt/rocm/bin", "/usr/lib/wsl/lib",
    "/snap/bin", "/run/current-system/sw/bin", "/opt/bin", "/opt/xpum/bin", "/usr/local/cuda/bin"};

constexpr Duration k_kill_slack = std::chrono::milliseconds{700};  // to kill the process group and reap it

}  // namespace

std::optional<os::Path> find_tool(const Toolbox& toolbox, const std::string& name) {
  if (!toolbox.directories) {
    if (auto path = os::find_program(name)) return path;
  }
  const auto is_program = [](const os::Path& path) {
    std::error_code error;
    const auto status = std::filesystem::status(path, error);
    return !error && std::filesystem::is_regular_file(status) &&
           (status.permissions() & std::filesystem::perms::others_exec) != std::filesystem::perms::none;
  };
  if (toolbox.directories) {
    for (const os::Path& directory : *toolbox.directories)
      if (is_program(directory / name)) return directory / name;
    return std::nullopt;
  }
  for (const char* directory : k_usual_places)
    if (is_program(os::Path(directory) / name)) return os::Path(directory) / name;
  return std::nullopt;
}

ToolAnswer ask_tool(const Toolbox& toolbox, const ToolCall& call) {
  ToolAnswer answer;
  answer.tool = call.argv.front();
  const auto path = find_tool(toolbox, answer.tool);
  if (!path) {
    answer.problem = answer.tool + ": not installed";
    return answer;
  }
  answer.found = true;
  auto argv = call.argv;
  argv.front() = path->string();
  os::RunOptions options;
  options.timeout = toolbox.deadline;
  options.output_max = toolbox.output_max;
  options.environment_extra = {{"LC_ALL", "C"}, {"NO_COLOR", "1"}};
  auto outcome = os::run(argv, options);
  if (!outcome) {
    answer.problem = outcome.error().code == Code::timed_out
                         ? answer.tool + ": no answer within " + format_duration(toolbox.deadline)
                         : answer.tool + ": " + outcome.error().message;
    return answer;
  }
  if (outcome->status.signal != 0) {
    answer.problem = answer.tool + ": killed by signal " + std::to_string(outcome->status.signal);
    return answer;
  }
  answer.answered = true;
  answer.exit_code = outcome->status.code;
  answer.out = std::move(outcome->out);
  answer.err = std::move(outcome->err);
  return answer;
}

std::vector<ToolAnswer> ask_tools(const Toolbox& toolbox, const std::vector<ToolCall>& calls) {
  std::vector<std::function<ToolAnswer()>> works;
  works.reserve(calls.size());
  for (const ToolCall& call : calls) works.push_back([toolbox, call] { return ask_tool(toolbox, call); });
  auto results = gather<ToolAnswer>(std::move(works), toolbox.deadline + k_kill_slack);
  std::vector<ToolAnswer> answers;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (results[i]) {
      answers.push_back(std::move(*results[i]));
      continue;
    }
    ToolAnswer stuck;
    stuck.tool = calls[i].argv.front();
    stuck.found = true;
    stuck.problem =
        stuck.tool + ": stuck in the kernel, could not be killed within " + format_duration(toolbox.deadline);
    answers.push_back(std::move(stuck));
  }
  return answers;
}

}  // namespace gridctl::probe
