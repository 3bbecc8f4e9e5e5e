// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/text.hpp"
#include "os/files.hpp"

namespace gridctl::os {

namespace {
constexpr std::size_t k_path_max = 4095;  // bytes; PATH_MAX less the terminator

// Returns the components of a relative path without "." ones; protocol_violation for a path that could lead outside.
Result<std::vector<std::string>> components_of(std::string_view relative) {
  const auto refuse = [&](const char* why) {
    return make_error(Code::protocol_violation, "path '" + sanitize(relative.substr(0, 200)) + "' refused: " + why);
  };
  if (relative.empty()) return refuse("it is empty");
  if (relative.size() > k_path_max) return refuse("it is too long");
  if (relative.front() == '/') return refuse("it is absolute");
  if (relative.find('\0') != std::string_view::npos) return refuse("it contains a NUL byte");
  std::vector<std::string> parts;
  for (std::string& part : split(relative, '/')) {
    if (part == "..") return refuse("it holds '..'");
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  if (parts.empty()) parts.push_back(".");
  return parts;
}

Error beneath_error(int err, const std::string& verb, std::string_view relative) {
  if (err == ELOOP || err == EXDEV)
    return make_error(Code::protocol_violation, "path '" + sanitize(relative.substr(0, 200)) +
                                                    "' refused: it leads outside, or through a symbolic link");
  return path_error(err, verb, Path(relative));
}

// Opens one component at a time, each without following links. Returns -1 and sets errno on failure.
int open_by_walk(int directory_fd, const std::vector<std::string>& parts, int flags, unsigned mode) {
  Fd held;
  int at = directory_fd;
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const int next = ::openat(at, parts[i].c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
      // O_DIRECTORY|O_NOFOLLOW fails with ENOTDIR for a link; openat2 would fail with ELOOP.
      struct stat info {};
      if (errno == ENOTDIR && ::fstatat(at, parts[i].c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0)
        errno = S_ISLNK(info.st_mode) ? ELOOP : ENOTDIR;
      return -1;
    }
    held = Fd{next};
    at = next;
  }
  return ::openat(at, parts.back().c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
}
}  // namespace

Result<Fd> open_beneath(int directory_fd, std::string_view relative, int flags, unsigned mode) {
  TRY_ASSIGN(const std::vector<std::string> parts, components_of(relative));
  const std::string path = join(parts, "/");
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOFOLLOW);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  do fd = ::syscall(SYS_openat2, directory_fd, path.c_str(), &how, sizeof how);
  while (fd < 0 && (errno == EINTR || errno == EAGAIN));  // EAGAIN: something was renamed during the lookup
  // Old kernels return ENOSYS, old container sandboxes EPERM.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM)) fd = open_by_walk(directory_fd, parts, flags, mode);
  if (fd < 0) return beneath_error(errno, "open", relative);
  return Fd{static_cast<int>(fd)};
}

Result<Fd> open_beneath_by_walk(int directory_fd, std::string_view relative, int flags, unsigned mode) {
  TRY_ASSIGN(const std::vector<std::string> parts, components_of(relative));
  const int fd = open_by_walk(directory_fd, parts, flags, mode);
  if (fd < 0) return beneath_error(errno, "open", relative);
  return Fd{fd};
}

Result<void> make_directories_beneath(int directory_fd, std::string_view relative, unsigned mode) {
  TRY_ASSIGN(const std::vector<std::string> parts, components_of(relative));
  Fd held;
  int at = directory_fd;
  for (const std::string& part : parts) {
    if (part == ".") return {};
    if (::mkdirat(at, part.c_str(), mode) != 0 && errno != EEXIST)
      return beneath_error(errno, "make directory", relative);
    const int next = open_by_walk(at, {part, "."}, O_PATH | O_DIRECTORY, 0);
    if (next < 0) return beneath_error(errno, "make directory", relative);
    held = Fd{next};
    at = next;
  }
  return {};
}

}  // namespace gridctl::os
