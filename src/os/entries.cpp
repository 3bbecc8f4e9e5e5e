// SPDX-License-Identifier: Apache-2.0
#include "os/entries.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

namespace gridctl::os {
namespace {

constexpr std::size_t k_link_max = 4095;  // bytes of a link's target, as the kernel allows

std::int64_t to_ns(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

FileStatus to_status(const struct stat& st) {
  FileStatus status;
  if (S_ISREG(st.st_mode)) status.kind = FileKind::regular;
  if (S_ISDIR(st.st_mode)) status.kind = FileKind::directory;
  if (S_ISLNK(st.st_mode)) status.kind = FileKind::symlink;
  status.mode = st.st_mode & 07777u;
  status.size = static_cast<std::uint64_t>(st.st_size);
  status.blocks_bytes = static_cast<std::uint64_t>(st.st_blocks) * 512;
#ifdef __APPLE__
  status.mtime_ns = to_ns(st.st_mtimespec);
  status.ctime_ns = to_ns(st.st_ctimespec);
#else
  status.mtime_ns = to_ns(st.st_mtim);
  status.ctime_ns = to_ns(st.st_ctim);
#endif
  status.inode = st.st_ino;
  status.device = static_cast<std::uint64_t>(st.st_dev);
  status.is_ours = st.st_uid == ::geteuid();
  return status;
}

std::string in_quotes(std::string_view name) { return "'" + std::string(name) + "'"; }

}  // namespace

Result<std::vector<std::string>> list_directory(int directory_fd) {
  // Opens its own descriptor, so that the caller's keeps its position.
  const int fd = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot list a directory");
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(fd), &::closedir);
  if (!dir) {
    const int err = errno;
    ::close(fd);
    return errno_error(err, "cannot list a directory");
  }
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return errno_error(errno, "cannot list a directory to its end");
  std::ranges::sort(names);
  return names;
}

Result<std::vector<std::string>> list_directory(const Path& directory) {
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(errno, "cannot open the directory " + in_quotes(directory.native()));
  return list_directory(fd.get()).context("while listing " + in_quotes(directory.native()));
}

Result<FileStatus> status_of(int fd) {
  struct stat st {};
  if (::fstat(fd, &st) != 0) return errno_error(errno, "cannot stat an open file");
  return to_status(st);
}

Result<std::optional<FileStatus>> status_at(int directory_fd, std::string_view name) {
  struct stat st {};
  const std::string text(name);
  if (::fstatat(directory_fd, text.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0) return std::optional(to_status(st));
  if (errno == ENOENT) return std::optional<FileStatus>();
  return errno_error(errno, "cannot stat " + in_quotes(name));
}

Result<std::optional<FileStatus>> status_of(const Path& path) { return status_at(AT_FDCWD, path.native()); }

Result<std::string> read_link_at(int directory_fd, std::string_view name) {
  std::array<char, k_link_max + 1> target;
  const std::string text(name);
  const ssize_t got = ::readlinkat(directory_fd, text.c_str(), target.data(), target.size());
  if (got < 0) return errno_error(errno, "cannot read the link " + in_quotes(name));
  if (static_cast<std::size_t>(got) > k_link_max) return make_error(Code::io, "target of link is too long: " + text);
  return std::string(target.data(), static_cast<std::size_t>(got));
}

Result<void> make_link_at(int directory_fd, std::string_view name, std::string_view target) {
  const std::string to(target), text(name);
  if (::symlinkat(to.c_str(), directory_fd, text.c_str()) == 0) return {};
  return errno_error(errno, "cannot make the link " + in_quotes(name));
}

Result<void> link_file(const Path& from, const Path& to) {
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) == 0) return {};
  return errno_error(errno, "cannot link " + in_quotes(from.native()) + " as " + in_quotes(to.native()));
}

Result<void> rename_path(const Path& from, const Path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  return errno_error(errno, "cannot rename " + in_quotes(from.native()) + " to " + in_quotes(to.native()));
}

Result<void> remove_file(const Path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  return errno_error(errno, "cannot remove " + in_quotes(path.native()));
}

Result<bool> touch_file(const Path& path) {
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return errno_error(errno, "cannot set the time of " + in_quotes(path.native()));
}

Result<void> set_changed_at(int fd, WallTime when) {
  timespec times[2]{};
  times[0].tv_nsec = UTIME_OMIT;
  times[1].tv_sec = static_cast<time_t>(when.ms / 1000);
  times[1].tv_nsec = static_cast<long>(when.ms % 1000 * 1'000'000);
  if (::futimens(fd, times) == 0) return {};
  return errno_error(errno, "cannot set the time of a file");
}

Result<void> set_mode(int fd, unsigned mode) {
  if (::fchmod(fd, static_cast<mode_t>(mode)) == 0) return {};
  return errno_error(errno, "cannot set the mode of a file");
}

Result<void> set_size(int fd, std::uint64_t size) {
  if (::ftruncate(fd, static_cast<off_t>(size)) == 0) return {};
  return errno_error(errno, "cannot set the size of a file to " + std::to_string(size) + " bytes");
}

void start_writing_back(int fd, std::uint64_t offset, std::uint64_t size) {
#ifdef __linux__
  static_cast<void>(::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(size), SYNC_FILE_RANGE_WRITE));
#else
  static_cast<void>(fd), static_cast<void>(offset), static_cast<void>(size);
#endif
}

Result<void> write_at(int fd, ByteView bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error(errno, "cannot write " + std::to_string(bytes.size()) + " bytes");
    bytes = bytes.subspan(static_cast<std::size_t>(put));
    offset += static_cast<std::uint64_t>(put);
  }
  return {};
}

Result<void> may_read(int directory_fd, std::string_view name) {
  if (::faccessat(directory_fd, std::string(name).c_str(), R_OK, AT_EACCESS) == 0) return {};
  return errno_error(errno, "cannot read it");
}

Result<void> link_file_at(int from_directory_fd, int to_directory_fd, std::string_view name) {
  const std::string text(name);
  if (::linkat(from_directory_fd, text.c_str(), to_directory_fd, text.c_str(), 0) == 0) return {};
  return errno_error(errno, "cannot link '" + text + "'");
}

Result<std::size_t> read_at(int fd, std::span<std::byte> into, std::uint64_t offset) {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t got = ::pread(fd, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(errno, "cannot read " + std::to_string(into.size()) + " bytes");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::optional<std::uint64_t> next_data(int fd, std::uint64_t offset) {
  const off_t at = ::lseek(fd, static_cast<off_t>(offset), SEEK_DATA);
  if (at >= 0) return static_cast<std::uint64_t>(at);
  return errno == ENXIO ? std::optional{UINT64_MAX} : std::nullopt;
}

std::optional<WallTime> accessed_at(const Path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return WallTime{static_cast<std::int64_t>(info.st_atim.tv_sec) * 1000};
}

bool set_attribute(const Path& directory, const std::string& name) { return ::setxattr(directory.c_str(), name.c_str(), "", 0, 0) == 0; }

bool has_attribute(int fd, const std::string& name) { return ::fgetxattr(fd, name.c_str(), nullptr, 0) >= 0; }

}  // namespace gridctl::os
