// SPDX-License-Identifier: Apache-2.0
#include "os/files.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/net.hpp"
#include "os/random.hpp"

namespace gridctl::os {

namespace {
constexpr std::size_t k_copy_buffer_bytes = 1 << 20;  // large enough that the system call does not matter
}  // namespace

Error path_error(int err, const std::string& verb, const Path& path) {
  Error error = errno_error(err, "cannot " + verb + " '" + path.native() + "'");
  if (err == ENOENT || err == ENOTDIR) error.code = Code::not_found;
  if (err == EEXIST) error.code = Code::exists;
  error.retry = default_retry(error.code);
  return error;
}

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Fd::~Fd() { reset(); }

void Fd::reset() {
  if (fd_ >= 0) ::close(fd_);  // never repeated: after EINTR Linux has closed it already
  fd_ = -1;
}

Result<std::pair<Fd, Fd>> make_pipe() {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "cannot make a pipe");
  return std::pair{Fd{ends[0]}, Fd{ends[1]}};
}

Result<bool> wait_ready(int fd, bool read, bool write, Duration timeout) {
  Poll poll{fd, {read, write}, {}};
  return wait_any({&poll, 1}, system_clock().boot() + timeout, system_clock());
}

Result<std::string> read_file(const Path& path, std::uint64_t bytes_max) {
  TRY_ASSIGN(const Fd fd, open_file(path, O_RDONLY));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return path_error(errno, "read", path);
  std::string content;
  std::size_t room = std::min<std::uint64_t>(static_cast<std::uint64_t>(info.st_size), bytes_max) + 4096;
  for (std::size_t filled = 0;;) {
    content.resize(filled + room);
    const ssize_t got = ::read(fd.get(), content.data() + filled, room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return path_error(errno, "read", path);
    const bool is_full = static_cast<std::size_t>(got) == room;
    filled += static_cast<std::size_t>(got);
    if (filled > bytes_max)
      return make_error(Code::io, "cannot read '" + path.native() + "': larger than " + format_size(bytes_max));
    content.resize(filled);
    if (got == 0) return content;
    room = is_full ? std::max<std::size_t>(4096, filled) : 4096;  // rarely is there more than fstat has said
  }
}

namespace {
Result<void> write_beside_and_rename(const Path& path, std::string_view content, unsigned mode, bool durable) {
  const Path temporary = path.parent_path() / ("." + path.filename().native() + ".tmp-" + random_id(10));
  TRY_ASSIGN(Fd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, mode));
  const auto fill = [&]() -> Result<void> {
    if (::fchmod(fd.get(), mode) != 0) return path_error(errno, "set the mode of", temporary);  // umask
    TRY(write_all(fd.get(), as_bytes(content)).context("while writing '" + path.native() + "'"));
    if (durable) TRY(sync_fd(fd.get()).context("while writing '" + path.native() + "'"));
    fd.reset();
    if (::rename(temporary.c_str(), path.c_str()) != 0) return path_error(errno, "replace", path);
    return {};
  };
  Result<void> filled = fill();
  if (!filled) ::unlink(temporary.c_str());
  if (filled && durable) return sync_directory(path.parent_path());
  return filled;
}
}  // namespace

Result<void> write_file_durably(const Path& path, std::string_view content, unsigned mode) {
  return write_beside_and_rename(path, content, mode, true);
}

Result<void> write_file_atomically(const Path& path, std::string_view content, unsigned mode) {
  return write_beside_and_rename(path, content, mode, false);
}

Result<void> sync_directory(const Path& directory) {
  TRY_ASSIGN(const Fd fd, open_file(directory.empty() ? Path(".") : directory, O_RDONLY | O_DIRECTORY));
  // Some network and FUSE file systems cannot sync a directory: they return EINVAL, and then nothing more can be done.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return path_error(errno, "sync", directory);
  return {};
}

Result<void> make_directories(const Path& path, unsigned mode) {
  Path built;
  for (const Path& part : path) {
    built /= part;
    if (::mkdir(built.c_str(), mode) == 0) continue;
    if (errno == EEXIST) continue;
    const int err = errno;
    struct stat info {};
    // A parent without write permission (EROFS, EACCES) is fine if it exists.
    if (::stat(built.c_str(), &info) != 0) return path_error(err, "make directory", built);
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return path_error(errno, "make directory", path);
  if (!S_ISDIR(info.st_mode)) return path_error(EEXIST, "make directory", path);
  return {};
}

Result<Fd> open_file(const Path& path, int flags, unsigned mode) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return Fd{fd};
    if (errno != EINTR) return path_error(errno, "open", path);
  }
}

Result<Fd> open_memory() {
  Fd fd(::memfd_create("gridctl", MFD_CLOEXEC));
  if (!fd.valid()) return errno_error(errno, "cannot make a file in memory");
  return fd;
}

Result<Fd> memory_with(ByteView content) {
  TRY_ASSIGN(Fd fd, open_memory());
  TRY(write_all(fd.get(), content));
  if (::lseek(fd.get(), 0, SEEK_SET) < 0) return errno_error(errno, "cannot read a file in memory");
  return fd;
}

bool exists(const Path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

Result<DiskSpace> disk_space(const Path& path) {
  struct statvfs info {};
  if (::statvfs(path.c_str(), &info) != 0) return path_error(errno, "measure the free space of", path);
  return DiskSpace{std::uint64_t{info.f_bavail} * info.f_frsize, std::uint64_t{info.f_blocks} * info.f_frsize};
}

Result<std::uint64_t> free_bytes(const Path& path) {
  TRY_ASSIGN(const DiskSpace space, disk_space(path));
  return space.free;
}

Result<void> read_exactly(int fd, std::byte* into, std::size_t count, std::uint64_t offset) {
  TRY_ASSIGN(const std::size_t got, read_at(fd, {into, count}, offset));
  if (got == count) return {};
  return make_error(Code::io, "cannot read: the file ends at byte " + std::to_string(offset + got));
}

Result<void> write_all(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error(errno, "cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return {};
}

Result<void> sync_file_system(int fd) {
  if (::syncfs(fd) != 0) return errno_error(errno, "cannot sync the file system");
  return {};
}

Result<void> sync_fd(int fd) {
  // Do not repeat it after an error: the kernel may have dropped the dirty pages, so a second fsync would lie.
  if (::fsync(fd) != 0) return errno_error(errno, "cannot sync");
  return {};
}

bool share_extents(int from_fd, int to_fd) { return ::ioctl(to_fd, FICLONE, from_fd) == 0; }

Result<void> clone_file(int from_fd, int to_fd) {
  if (share_extents(from_fd, to_fd)) return {};
  off_t at = 0, to = 0;
  for (;;) {
    const ssize_t copied = ::copy_file_range(from_fd, &at, to_fd, &to, std::size_t{1} << 30, 0);
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EIO)) return errno_error(errno, "cannot copy");
    if (copied <= 0) break;  // end, or not possible here: the plain copy goes on from where this one stands
  }
  Bytes buffer(k_copy_buffer_bytes);
  if (::lseek(to_fd, to, SEEK_SET) < 0) return errno_error(errno, "cannot copy");
  for (;;) {
    const ssize_t got = ::pread(from_fd, buffer.data(), buffer.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot copy");
    if (got == 0) return {};
    TRY(write_all(to_fd, ByteView{buffer.data(), static_cast<std::size_t>(got)}));
    at += got;
  }
}

}  // namespace gridctl::os
