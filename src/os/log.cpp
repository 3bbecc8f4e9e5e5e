// SPDX-License-Identifier: Apache-2.0
#include "os/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <utility>

#include "base/names.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/mutex.hpp"

namespace gridctl::os {

namespace {
constexpr int k_level_none = 100;

struct Sink {
  Mutex mutex;
  Path path GRIDCTL_GUARDED_BY(mutex);  // empty = stderr
  Fd file GRIDCTL_GUARDED_BY(mutex);
  std::shared_ptr<const std::function<std::string(std::string)>> filter GRIDCTL_GUARDED_BY(mutex);
  std::uint64_t bytes GRIDCTL_GUARDED_BY(mutex) = 0, bytes_max GRIDCTL_GUARDED_BY(mutex) = 0;
};
std::atomic<int> g_level{k_level_none};

Sink& sink() {
  static Sink* the_sink = new Sink;  // never destroyed: threads may log while the process ends
  return *the_sink;
}

void open_log(Sink& to) GRIDCTL_REQUIRES(to.mutex) {
  Result<Fd> fd = open_file(to.path, O_WRONLY | O_APPEND | O_CREAT);
  to.file = fd ? std::move(*fd) : Fd{};
  struct stat info {};
  to.bytes = to.file.valid() && ::fstat(to.file.get(), &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

void rotate(Sink& to) GRIDCTL_REQUIRES(to.mutex) {
  const std::string name = to.path.native();
  ::rename((name + ".1").c_str(), (name + ".2").c_str());
  ::rename(name.c_str(), (name + ".1").c_str());
  open_log(to);
}

constexpr Names<LogLevel, LogLevel::error> level_name{"debug", "info", "warn", "error"};
}  // namespace

void log_to_file(const Path& path, LogLevel level, std::uint64_t bytes_max) {
  Sink& to = sink();
  const MutexLock lock(to.mutex);
  to.path = path;
  to.bytes_max = bytes_max;
  open_log(to);
  g_level = static_cast<int>(level);
}

void log_to_stderr(LogLevel level) {
  Sink& to = sink();
  const MutexLock lock(to.mutex);
  to.path.clear();
  to.file.reset();
  g_level = static_cast<int>(level);
}

void filter_log(std::function<std::string(std::string)> filter) {
  Sink& to = sink();
  const MutexLock lock(to.mutex);
  to.filter = std::make_shared<const std::function<std::string(std::string)>>(std::move(filter));
}

namespace {
std::string filtered(std::string_view line) {
  const auto filter = [] {
    Sink& to = sink();
    const MutexLock lock(to.mutex);
    return to.filter;
  }();
  return filter ? (*filter)(std::string(line)) : std::string(line);
}
}  // namespace

bool log_enabled(LogLevel level) { return static_cast<int>(level) >= g_level.load(std::memory_order_relaxed); }

void log(LogLevel level, std::string_view line) {
  if (!log_enabled(level)) return;
  std::string text = format_rfc3339(system_clock().wall()) + " " + std::string(level_name(level)) + " ";
  text += sanitize(filtered(line));  // one entry is one line, whatever a host put into it
  text += '\n';
  Sink& to = sink();
  const MutexLock lock(to.mutex);
  if (to.path.empty()) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    return;
  }
  if (to.bytes + text.size() > to.bytes_max) rotate(to);
  // A log that cannot be written must never stop the operations that it records.
  if (to.file.valid() && write_all(to.file.get(), as_bytes(text))) to.bytes += text.size();
}

}  // namespace gridctl::os
