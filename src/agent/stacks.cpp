// SPDX-License-Identifier: Apache-2.0
#include "agent/stacks.hpp"

#include <algorithm>
#include <map>

#include "agent/process_tree.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"
#include "wire/insight.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_proc_bytes = 256 * 1024;    // of one file in /proc
constexpr std::size_t k_command_bytes = 200;          // of a command line
constexpr std::size_t k_traced_max = 512;
constexpr std::size_t k_python_bytes = 64 * 1024;     // of one process's Python stack
constexpr Duration k_pyspy_wait = std::chrono::seconds{5};
constexpr std::string_view k_recorder = "nccl_trace_rank_";

Path proc_of(int pid) { return Path("/proc") / std::to_string(pid); }

std::string proc_text(int pid, const char* name) {
  const auto text = os::read_file(proc_of(pid) / name, k_proc_bytes);
  return text ? *text : "";
}

std::string command_of(int pid) {
  std::string command = proc_text(pid, "cmdline");
  std::ranges::replace(command, '\0', ' ');
  return sanitize(std::string_view(command).substr(0, k_command_bytes));
}

// Returns a rank such as "3", or "" if the environment names none or is not readable.
std::string rank_of(int pid) {
  for (const std::string& assignment : split(proc_text(pid, "environ"), '\0'))
    if (assignment.starts_with("GRIDCTL_RANK=")) return assignment.substr(13, 10);
  return "";
}

std::string state_of(int pid) {
  const std::string state = line_value(proc_text(pid, "status"), "State:");
  return state.empty() ? "gone" : state;
}

std::string indented(std::string_view text) {
  std::string lines;
  for (const std::string& line : split_lines(text)) lines += "    " + sanitize(line) + "\n";
  return lines;
}

bool is_python(int pid) {
  std::error_code failed;
  const std::string program = std::filesystem::read_symlink(proc_of(pid) / "exe", failed).filename().string();
  return !failed && program.find("python") != std::string::npos;
}

class Stacks {
 public:
  Stacks(const AttemptDir& attempt, const os::Clock& clock)
      : attempt_(attempt), clock_(clock), over_(clock.boot() + k_stacks_wait), pyspy_(os::find_program("py-spy")) {}

  Result<std::string> run() {
    const unsigned launch = newest_launch(attempt_);
    const auto init = launch > 0 ? lock_holder(attempt_.run(launch) / "lock") : std::nullopt;
    if (!init) return make_error(Code::not_found, "nothing of this attempt runs here");
    std::multimap<std::string, int> by_rank;
    for (const os::ProcessId& process : os::descendants(init->pid)) {
      if (by_rank.size() >= k_traced_max) break;
      by_rank.emplace(rank_of(process.pid), process.pid);
    }
    for (const auto& [rank, pid] : by_rank) add(rank, pid);
    add_recorders(attempt_.run(launch));
    if (text_.size() > wire::k_stacks_bytes_max) text_.resize(wire::k_stacks_bytes_max);
    return std::move(text_);
  }

 private:
  void add(const std::string& rank, int pid) {
    text_ += (rank.empty() ? "process " : "rank " + sanitize(rank) + ", process ") + std::to_string(pid) + ": " +
             command_of(pid) + "\n  state " + state_of(pid);
    if (const std::string place = proc_text(pid, "wchan"); !place.empty() && place != "0")
      text_ += ", waits in " + sanitize(place);
    text_ += "\n";
    if (const std::string stack = proc_text(pid, "stack"); !stack.empty()) text_ += "  kernel:\n" + indented(stack);
    if (is_python(pid)) add_python(pid);
  }

  void add_python(int pid) {
    if (!pyspy_) {
      if (!std::exchange(told_, true)) text_ += "  no Python stacks: py-spy is not installed on this host\n";
      return;
    }
    if (clock_.boot() >= over_) return;
    os::RunOptions options;
    options.timeout = std::min(k_pyspy_wait, over_ - clock_.boot());
    options.output_max = k_python_bytes;
    const auto outcome = os::run({pyspy_->string(), "dump", "--nonblocking", "--pid", std::to_string(pid)}, options);
    if (!outcome) text_ += "  no Python stack: " + sanitize(outcome.error().one_line()) + "\n";
    else if (!outcome->status.success()) text_ += "  no Python stack: " + sanitize(trim(outcome->err), 300) + "\n";
    else text_ += "  Python:\n" + indented(outcome->out);
  }

  // Adds files that torch writes when a collective times out, or on request: pickles, whose end people read elsewhere.
  void add_recorders(const Path& run) {
    const auto names = os::list_directory(run);
    if (!names) return;
    for (const std::string& name : *names) {
      if (!name.starts_with(k_recorder) || name.ends_with(".pipe")) continue;
      const auto file = open_hostile(run, name);
      if (file) text_ += "NCCL flight recorder: " + sanitize(name) + ", " + format_size(file->size) + "\n";
    }
  }

  const AttemptDir& attempt_;
  const os::Clock& clock_;
  const BootTime over_;
  const std::optional<Path> pyspy_;
  bool told_ = false;
  std::string text_;
};
}  // namespace

Result<std::string> stacks_of(const AttemptDir& attempt, const os::Clock& clock) {
  return Stacks(attempt, clock).run();
}

}  // namespace gridctl::agent
