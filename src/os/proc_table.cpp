// SPDX-License-Identifier: Apache-2.0
// Identifies processes through /proc.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/process.hpp"

namespace gridctl::os {

namespace {
constexpr std::uint64_t k_stat_bytes_max = 64 * 1024;  // one line of /proc; far more than it can be

struct ProcEntry {
  int parent = 0;
  char state = '?';
  std::uint64_t start_ticks = 0;
};

std::optional<ProcEntry> read_entry(int pid) {
  const Result<std::string> stat = read_file("/proc/" + std::to_string(pid) + "/stat", k_stat_bytes_max);
  if (!stat) return std::nullopt;
  // The program's name stands in parentheses and may itself contain spaces and parentheses, so count from the last one.
  const std::size_t close = stat->rfind(')');
  if (close == std::string::npos || close + 2 >= stat->size()) return std::nullopt;
  const std::vector<std::string> fields = split(std::string_view(*stat).substr(close + 2), ' ');
  ProcEntry entry;
  if (fields.size() < 20 || fields[0].empty()) return std::nullopt;
  entry.state = fields[0][0];
  if (!parse_into(fields[1], entry.parent) || !parse_into(fields[19], entry.start_ticks)) return std::nullopt;
  return entry;
}

bool is_live(const ProcEntry& entry) { return entry.state != 'Z' && entry.state != 'X' && entry.state != 'x'; }

std::vector<int> all_pids() {
  std::vector<int> pids;
  for (const std::string& name : list_directory("/proc").value_or(std::vector<std::string>{}))
    if (const auto pid = leading_number<int>(name); pid && *pid > 0) pids.push_back(*pid);
  return pids;
}
}  // namespace

int process_id() { return ::getpid(); }

std::optional<ProcessId> identify(int pid) {
  const std::optional<ProcEntry> entry = pid > 0 ? read_entry(pid) : std::nullopt;
  if (!entry || !is_live(*entry)) return std::nullopt;
  return ProcessId{pid, entry->start_ticks};
}

bool is_alive(const ProcessId& process) { return identify(process.pid) == process; }

std::vector<ProcessId> descendants(int pid) {
  if (pid <= 0) return {};  // "the parent of everything" is never what a caller wants to end
  std::multimap<int, int> children;
  std::map<int, ProcEntry> entries;
  for (int candidate : all_pids())
    if (const std::optional<ProcEntry> entry = read_entry(candidate)) {
      children.emplace(entry->parent, candidate);
      entries.emplace(candidate, *entry);
    }
  std::vector<ProcessId> found;
  std::vector<int> queue{pid};
  // A pid occurs once as a child, so even a table read while processes came and went cannot make a cycle longer than
  // the table.
  while (!queue.empty() && found.size() <= entries.size()) {
    const auto [first, last] = children.equal_range(queue.back());
    queue.pop_back();
    for (auto child = first; child != last; ++child) {
      queue.push_back(child->second);
      const ProcEntry& entry = entries.at(child->second);
      if (is_live(entry)) found.push_back({child->second, entry.start_ticks});
    }
  }
  return found;
}

Result<Fd> open_pidfd(const ProcessId& process) {
  const std::string name = "process " + std::to_string(process.pid);
  Fd fd{static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0))};
  if (!fd.valid()) {
    if (errno == ESRCH) return make_error(Code::not_found, name + " has ended");
    if (errno == ENOSYS || errno == EPERM) return make_error(Code::unsupported, "this kernel has no pidfd_open");
    return errno_error(errno, "cannot watch " + name);
  }
  // The descriptor refers to the present owner of the pid; only afterwards can one check that it is the intended
  // process.
  if (!is_alive(process)) return make_error(Code::not_found, name + " has ended");
  return fd;
}

Result<bool> send_signal(const ProcessId& process, int signal) {
  const Result<Fd> handle = open_pidfd(process);
  if (!handle && handle.error().code == Code::not_found) return false;
  int sent = -1;
  if (handle) {
    sent = static_cast<int>(::syscall(SYS_pidfd_send_signal, handle->get(), signal, nullptr, 0));
  } else {
    if (!is_alive(process)) return false;
    sent = ::kill(process.pid, signal);
  }
  if (sent == 0) return true;
  if (errno == ESRCH) return false;
  return errno_error(errno,
                     "cannot send signal " + std::to_string(signal) + " to process " + std::to_string(process.pid));
}

std::string boot_id() { return std::string(trim(read_file("/proc/sys/kernel/random/boot_id", 4096).value_or(""))); }

std::string machine_id() { return std::string(trim(read_file("/etc/machine-id", 4096).value_or(""))); }

std::optional<Path> find_program(const std::string& name) {
  const auto runnable = [](const Path& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) return runnable(name) ? std::optional<Path>(name) : std::nullopt;
  for (const std::string& folder : split(environment("PATH").value_or("/usr/local/bin:/usr/bin:/bin"), ':')) {
    Path candidate = Path(folder.empty() ? "." : folder) / name;
    if (runnable(candidate)) return candidate;
  }
  return std::nullopt;
}

}  // namespace gridctl::os
