// SPDX-License-Identifier: Apache-2.0
// Reads the kernel log as far as this user may.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "agent/health.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {
namespace {

constexpr std::size_t k_record_max = 16 * 1024;     // the kernel's own limit is 8 KiB with its head
constexpr std::size_t k_log_bytes_max = 16u << 20;  // the largest ring anybody configures

// Each read returns one record; at the end, the kernel returns EAGAIN, and EPIPE if records were overwritten.
bool read_kmsg(probe::KernelLogText& log) {
  const os::Fd file(::open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) {
    log.problem = std::string("/dev/kmsg: ") + std::strerror(errno);
    return false;
  }
  std::array<char, k_record_max> record;
  while (log.text.size() < k_log_bytes_max) {
    const ssize_t got = ::read(file.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;
    if (got < 0 && errno != EAGAIN) {
      log.problem = std::string("/dev/kmsg: ") + std::strerror(errno);
      return false;
    }
    if (got <= 0) break;
    log.text.append(record.data(), static_cast<std::size_t>(got));
  }
  log.form = probe::LogForm::kmsg;
  return true;
}

bool read_journal(const probe::Toolbox& toolbox, probe::KernelLogText& log) {
  probe::ToolAnswer answer =
      probe::ask_tool(toolbox, {{"journalctl", "-k", "-b", "-q", "-o", "short-monotonic", "--no-pager", "-n", "5000"}});
  if (!answer.ok() || answer.out.find("kernel: ") == std::string::npos) return false;
  log.text = std::move(answer.out);
  log.form = probe::LogForm::journal;
  return true;
}

}  // namespace

probe::KernelLogText read_kernel_log(const probe::Toolbox& toolbox) {
  probe::KernelLogText log;
  log.now_us = static_cast<std::uint64_t>(os::awake_time() / std::chrono::microseconds{1});
  if (read_kmsg(log) || read_journal(toolbox, log)) log.problem.clear();
  else
    log.problem +=
        "; this user cannot read kernel messages in the journal; members of the groups adm and systemd-journal can";
  return log;
}

}  // namespace gridctl::agent
