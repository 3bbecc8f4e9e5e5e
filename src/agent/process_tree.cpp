// SPDX-License-Identifier: Apache-2.0
#include "agent/process_tree.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_locks_bytes_max = 16u << 20;
constexpr std::uint64_t k_status_bytes_max = 64u << 10;
constexpr std::uint64_t k_process_file_bytes_max = 4u << 20;

struct LockLine {
  int pid = 0;
  unsigned major = 0, minor = 0;
  unsigned long long inode = 0;
};

// Parses "5: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF"; waiters have "->" after the number.
std::optional<LockLine> parse_lock(const std::string& line) {
  LockLine lock;
  if (std::sscanf(line.c_str(), "%*d: FLOCK %*s %*s %d %x:%x:%llu", &lock.pid, &lock.major, &lock.minor, &lock.inode) !=
      4)
    return std::nullopt;
  return lock;
}

// Returns the processes whose file of that name in /proc satisfies `holds`.
template <class Holds>
std::vector<os::ProcessId> processes_where(const char* file, Holds holds) {
  std::vector<os::ProcessId> found;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
    const auto pid = parse_number<int>(entry.path().filename().string());
    if (!pid) continue;
    const auto content = os::read_file(entry.path() / file, k_process_file_bytes_max);
    if (!content || !holds(std::string_view(*content))) continue;
    if (const auto process = os::identify(*pid)) found.push_back(*process);
  }
  return found;
}

}  // namespace

std::optional<os::ProcessId> lock_holder(const os::Path& file) {
  struct stat info {};
  if (::lstat(file.c_str(), &info) != 0) return std::nullopt;
  auto locks = os::read_file("/proc/locks", k_locks_bytes_max);
  if (!locks) return std::nullopt;
  std::optional<int> by_inode;
  for (const std::string& line : split_lines(*locks)) {
    const auto lock = parse_lock(line);
    if (!lock || lock->inode != info.st_ino || lock->pid <= 0) continue;
    if (lock->major == major(info.st_dev) && lock->minor == minor(info.st_dev)) return os::identify(lock->pid);
    by_inode = lock->pid;
  }
  if (!by_inode) return std::nullopt;
  // Such file systems report another device number here than in stat, like overlays whose layers are different file
  // systems.
  const std::string kind = os::file_system_kind(file);
  return is_one_of(kind, {"btrfs", "overlay"}) ? os::identify(*by_inode) : std::nullopt;
}

std::vector<os::ProcessId> marked_processes(const std::string& mark) {
  return processes_where("environ", [&](std::string_view variables) { return variables.find(mark) != variables.npos; });
}

std::vector<os::ProcessId> processes_called_with(const std::vector<std::string>& arguments) {
  std::string wanted(1, '\0');
  for (const std::string& argument : arguments) wanted += argument + '\0';
  return processes_where("cmdline", [&](std::string_view line) { return line.find(wanted) != line.npos; });
}

void merge(std::vector<os::ProcessId>& processes, const std::vector<os::ProcessId>& more) {
  for (const os::ProcessId& process : more)
    if (std::ranges::find(processes, process) == processes.end()) processes.push_back(process);
}

void signal_each(const std::vector<os::ProcessId>& processes, int signal) {
  for (const os::ProcessId& process : processes) {
    if (const auto pidfd = os::open_pidfd(process)) {
      ::syscall(SYS_pidfd_send_signal, pidfd->get(), signal, nullptr, 0);
    } else if (os::is_alive(process)) {  // kernels before 5.3
      ::kill(process.pid, signal);
    }
  }
}

namespace {
std::vector<os::ProcessId> those_catching(const std::vector<os::ProcessId>& processes, int signal, bool catching) {
  std::vector<os::ProcessId> found;
  for (const os::ProcessId& process : processes) {
    const auto status = os::read_file("/proc/" + std::to_string(process.pid) + "/status", k_status_bytes_max);
    if (!status) continue;
    for (const std::string& line : split_lines(*status)) {
      unsigned long long mask = 0;
      if (std::sscanf(line.c_str(), "SigCgt: %llx", &mask) == 1 && ((mask >> (signal - 1) & 1) != 0) == catching)
        found.push_back(process);
    }
  }
  return found;
}
}  // namespace

void signal_each_catching(const std::vector<os::ProcessId>& processes, int signal) {
  signal_each(those_catching(processes, signal, true), signal);
}

void signal_each_not_catching(const std::vector<os::ProcessId>& processes, int signal) {
  signal_each(those_catching(processes, signal, false), signal);
}

}  // namespace gridctl::agent
