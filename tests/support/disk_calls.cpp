// SPDX-License-Identifier: Apache-2.0
// Defines functions of the C library in the test itself: its own code and what it links find these first.
#include "support/disk_calls.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <sstream>

namespace gridctl::testing {

namespace fs = std::filesystem;

namespace {

std::mutex of_watch;
fs::path watched_folder;
DiskWatcher::Look watch;
std::atomic<bool> is_watched = false;  // looked at first: a process that was forked beside threads must not lock
thread_local bool looks = false;       // what is called while somebody looks is no news

bool is_below(const fs::path& path) {
  const std::string folder = watched_folder.native() + "/";
  return path == watched_folder || path.native().compare(0, folder.size(), folder) == 0;
}

int ask(const DiskCall& call) {
  if (looks) return 0;
  const std::lock_guard lock(of_watch);
  if (!watch || !is_below(call.path)) return 0;
  looks = true;
  const int failure = watch(call);
  looks = false;
  return failure;
}

fs::path path_of(int fd) {
  std::array<char, 4096> target{};
  const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target.data(), target.size());
  return size > 0 ? fs::path(std::string(target.data(), static_cast<std::size_t>(size))) : fs::path();
}

// Names a file as the kernel names that of a descriptor: without links on the way.
fs::path settled(const fs::path& path) {
  std::error_code failed;
  const fs::path folder = fs::weakly_canonical(path.parent_path(), failed);
  return failed ? path : folder / path.filename();
}

fs::path path_of(int directory, const char* name) {
  if (name[0] == '/') return settled(name);
  return settled((directory == AT_FDCWD ? fs::current_path() : path_of(directory)) / name);
}

template <class Call, class Perform>
int done(Call call, Perform perform) {
  if (const int failure = is_watched ? ask(call()) : 0; failure != 0) {
    errno = failure;
    return -1;
  }
  return static_cast<int>(perform());
}

std::size_t last_before(const std::vector<DiskCall>& calls, DiskCall::Kind kind, const fs::path& path, std::size_t end) {
  while (end > 0 && (calls[end - 1].kind != kind || calls[end - 1].path != path)) --end;
  return end;
}

}  // namespace

DiskWatcher::DiskWatcher(const fs::path& below, Look look) {
  const std::lock_guard lock(of_watch);
  if (is_watched.exchange(true)) std::abort();
  watched_folder = settled(below);
  watch = std::move(look);
}

DiskWatcher::~DiskWatcher() {
  const std::lock_guard lock(of_watch);
  is_watched = false;
  watch = nullptr;
}

DiskRecord::DiskRecord(const fs::path& below)
    : fd_(::memfd_create("calls", MFD_CLOEXEC)), watcher_(below, [fd = fd_](const DiskCall& call) {
        const std::string line = std::string(1, static_cast<char>(call.kind)) + "\t" + call.path.native() + "\t" + call.from.native() + "\n";
        return ::write(fd, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : ENOSPC;
      }) {
  if (fd_ < 0) std::abort();
}

DiskRecord::~DiskRecord() { ::close(fd_); }

std::string DiskRecord::text() const {
  std::string all(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
  if (::pread(fd_, all.data(), all.size(), 0) != static_cast<ssize_t>(all.size())) std::abort();
  return all;
}

std::vector<DiskCall> DiskRecord::calls() const {
  std::vector<DiskCall> found;
  std::istringstream lines(text());
  for (std::string kind, path, from; std::getline(lines, kind, '\t') && std::getline(lines, path, '\t') && std::getline(lines, from);)
    found.push_back({static_cast<DiskCall::Kind>(kind.front()), path, from});
  return found;
}

std::size_t DiskRecord::named(const fs::path& file) const {
  const std::vector<DiskCall> all = calls();
  return last_before(all, DiskCall::Kind::rename, settled(file), all.size());
}

// Counts the calls until its folder was synced after it got its name. 0: it never was.
std::size_t DiskRecord::entered(const fs::path& entry) const {
  const std::vector<DiskCall> all = calls();
  const std::size_t renamed = last_before(all, DiskCall::Kind::rename, settled(entry), all.size());
  for (std::size_t i = renamed; renamed > 0 && i < all.size(); ++i)
    if (all[i].kind == DiskCall::Kind::sync && all[i].path == settled(entry).parent_path()) return i + 1;
  return 0;
}

std::size_t DiskRecord::durable(const fs::path& file) const {
  const std::vector<DiskCall> all = calls();
  const std::size_t renamed = last_before(all, DiskCall::Kind::rename, settled(file), all.size());
  const bool filled = renamed > 0 && last_before(all, DiskCall::Kind::sync, all[renamed - 1].from, renamed) > 0;
  return filled ? entered(file) : 0;
}

bool DiskRecord::is_kept(const fs::path& entry) const { return entered(entry) > 0; }

}  // namespace gridctl::testing

using gridctl::testing::DiskCall, gridctl::testing::done, gridctl::testing::path_of;

extern "C" {

int fsync(int fd) {
  return done([&] { return DiskCall{DiskCall::Kind::sync, path_of(fd), {}}; }, [&] { return ::syscall(SYS_fsync, fd); });
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return done([&] { return DiskCall{DiskCall::Kind::rename, path_of(to_folder, to), path_of(from_folder, from)}; },
              [&] { return ::syscall(SYS_renameat2, from_folder, from, to_folder, to, 0); });
}

int rename(const char* from, const char* to) noexcept { return ::renameat(AT_FDCWD, from, AT_FDCWD, to); }

int unlinkat(int folder, const char* name, int flags) noexcept {
  return done([&] { return DiskCall{DiskCall::Kind::remove, path_of(folder, name), {}}; },
              [&] { return ::syscall(SYS_unlinkat, folder, name, flags); });
}

}  // extern "C"
