// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::os {

namespace {
constexpr Duration k_lock_look = std::chrono::milliseconds{20};

bool is_still_at(int fd, const Path& path) {
  struct stat held {
  }, named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

// Returns an invalid Fd if another process holds the lock.
Result<Fd> lock_file(const Path& path, unsigned mode, int how) {
  for (;;) {
    TRY_ASSIGN(Fd fd, open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW, mode));
    while (::flock(fd.get(), how) != 0) {
      if (errno == EWOULDBLOCK) return Fd{};
      if (errno != EINTR) return path_error(errno, "lock", path);
    }
    // The file may have been removed between opening and locking: then the lock is on a file that no other process
    // finds.
    if (!is_still_at(fd.get(), path)) continue;
    const std::string pid = std::to_string(::getpid()) + "\n";
    // The pid is for people; on a full disk the lock holds nevertheless.
    if (::ftruncate(fd.get(), 0) == 0 && ::pwrite(fd.get(), pid.data(), pid.size(), 0) < 0) return fd;
    return fd;
  }
}
}  // namespace

Result<std::optional<FileLock>> FileLock::try_acquire(const Path& path, unsigned mode) {
  TRY_ASSIGN(Fd fd, lock_file(path, mode, LOCK_EX | LOCK_NB));
  if (!fd.valid()) return std::optional<FileLock>{};
  return std::optional<FileLock>{FileLock{std::move(fd)}};
}

Result<FileLock> FileLock::acquire(const Path& path, unsigned mode) {
  TRY_ASSIGN(Fd fd, lock_file(path, mode, LOCK_EX));
  return FileLock{std::move(fd)};
}

Result<std::optional<FileLock>> FileLock::acquire_within(const Path& path, Duration patience) {
  for (const BootTime deadline = system_clock().boot() + patience;;) {
    TRY_ASSIGN(std::optional<FileLock> lock, try_acquire(path));
    if (lock || system_clock().boot() > deadline) return lock;
    pause_for(k_lock_look);
  }
}

Result<std::optional<DirectoryLock>> DirectoryLock::try_acquire(const Path& directory) {
  TRY_ASSIGN(Fd fd, open_file(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::optional<DirectoryLock>{};
    if (errno != EINTR) return path_error(errno, "lock", directory);
  }
  if (!is_still_at(fd.get(), directory)) return std::optional<DirectoryLock>{};
  return std::optional<DirectoryLock>{DirectoryLock{std::move(fd)}};
}

}  // namespace gridctl::os
