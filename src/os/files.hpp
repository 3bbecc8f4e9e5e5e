// SPDX-License-Identifier: Apache-2.0
// Handles files: complete reads and durable writes, descriptors, locks, and opening strictly beneath a directory.
// Errors name the path; a missing file is Code::not_found, an existing one in the way Code::exists, a full disk
// Code::no_space.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::os {

using Path = std::filesystem::path;

// Returns "VERB 'PATH': strerror"; ENOENT and ENOTDIR give not_found, EEXIST gives exists, the rest follows
// errno_error.
[[nodiscard]] Error path_error(int err, const std::string& verb, const Path& path);

// Owns a descriptor, which is always close-on-exec.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

[[nodiscard]] Result<std::pair<Fd, Fd>> make_pipe();  // read end, write end
// Blocks until the descriptor is ready (or broken: then reading or writing returns the error). Returns false when the
// time has passed, which continues while the machine sleeps.
[[nodiscard]] Result<bool> wait_ready(int fd, bool read, bool write, Duration timeout);

// Returns the complete content; refuses (Code::io) a file larger than `bytes_max`. It can read /proc.
[[nodiscard]] Result<std::string> read_file(const Path& path, std::uint64_t bytes_max = 64ull << 20);
// Writes to a temporary name beside it, fsyncs, renames, fsyncs the directory. The result is complete or absent, and
// durable.
[[nodiscard]] Result<void> write_file_durably(const Path& path, std::string_view content, unsigned mode = 0600);
// Writes without the two fsyncs: completely or not at all, for state that may be lost in a crash of the machine.
[[nodiscard]] Result<void> write_file_atomically(const Path& path, std::string_view content, unsigned mode = 0600);
[[nodiscard]] Result<void> sync_directory(const Path& directory);
[[nodiscard]] Result<void> make_directories(const Path& path, unsigned mode = 0700);
// Removes a tree without following symbolic links and without crossing into other file systems' mounts; makes
// directories writable first if necessary. A missing tree is success.
[[nodiscard]] Result<void> remove_tree(const Path& path);
[[nodiscard]] Result<Fd> open_file(const Path& path, int flags, unsigned mode = 0600);
[[nodiscard]] Result<Fd> open_memory();       // a file of no file system, which ends with its last descriptor
[[nodiscard]] Result<Fd> memory_with(ByteView content);  // such a file, at its beginning
[[nodiscard]] bool exists(const Path& path);  // no error is ever taken for "absent": lstat ENOENT only
[[nodiscard]] Result<std::uint64_t> free_bytes(const Path& path);  // for an ordinary user
struct DiskSpace {
  std::uint64_t free = 0, total = 0;  // bytes; free for an ordinary user
};
[[nodiscard]] Result<DiskSpace> disk_space(const Path& path);
[[nodiscard]] Result<void> read_exactly(int fd, std::byte* into, std::size_t count, std::uint64_t offset);  // pread
[[nodiscard]] Result<void> write_all(int fd, ByteView bytes);  // blocking descriptor
[[nodiscard]] Result<void> sync_fd(int fd);                    // fsync
[[nodiscard]] Result<void> sync_file_system(int fd);           // all of that which the file is on
// Gives the empty file `to_fd` the content of `from_fd` without copying it (reflink). Returns false if the file system
// cannot do that.
[[nodiscard]] bool share_extents(int from_fd, int to_fd);
// Copies content; shares extents if the file system can (FICLONE), otherwise uses copy_file_range, otherwise read and
// write.
[[nodiscard]] Result<void> clone_file(int from_fd, int to_fd);

// Opens `relative` strictly beneath the directory: no "..", no absolute path, no symbolic link in any component
// (openat2 RESOLVE_BENEATH|NO_SYMLINKS|NO_MAGICLINKS, or a component walk on kernels without it). A path that breaks
// these rules is a protocol_violation, because such paths come from the other side.
[[nodiscard]] Result<Fd> open_beneath(int directory_fd, std::string_view relative, int flags, unsigned mode = 0600);
// Does the walk alone, which open_beneath uses as a fallback.
[[nodiscard]] Result<Fd> open_beneath_by_walk(int directory_fd, std::string_view relative, int flags,
                                              unsigned mode = 0600);
[[nodiscard]] Result<void> make_directories_beneath(int directory_fd, std::string_view relative, unsigned mode = 0700);

// Holds an exclusive advisory lock on a file (flock) until destruction or process death. The file stays; if another
// process removes it meanwhile, the lock is taken on the new one. Not for NFS shared between machines.
class FileLock {
 public:
  // Returns nullopt if another process holds it. Writes our pid into the file.
  [[nodiscard]] static Result<std::optional<FileLock>> try_acquire(const Path& path, unsigned mode = 0600);
  [[nodiscard]] static Result<FileLock> acquire(const Path& path, unsigned mode = 0600);  // waits
  // Tries so long, many times a second: nullopt if another process still holds it.
  [[nodiscard]] static Result<std::optional<FileLock>> acquire_within(const Path& path, Duration patience);
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Holds an exclusive and advisory lock (flock) on a directory itself until destruction or process death; it moves with
// the directory when that is renamed, and leaves no other file behind.
class DirectoryLock {
 public:
  // Returns nullopt if another process holds the lock, or has just renamed or removed the directory.
  [[nodiscard]] static Result<std::optional<DirectoryLock>> try_acquire(const Path& directory);

 private:
  explicit DirectoryLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

[[nodiscard]] std::optional<std::string> environment(std::string_view name);
[[nodiscard]] Path home_directory();           // $HOME
// Returns the directory that the variable (XDG_CONFIG_HOME, …) names, if it is absolute; else this one of $HOME.
[[nodiscard]] Path xdg_directory(std::string_view variable, const Path& usual);
[[nodiscard]] Result<Path> executable_path();  // /proc/self/exe
[[nodiscard]] Path temporary_directory();      // $TMPDIR, else /tmp
// Returns the kind of the file system that holds `path`: "tmpfs", "ext4", "nfs"…, or "unknown".
[[nodiscard]] std::string file_system_kind(const Path& path);

}  // namespace gridctl::os
