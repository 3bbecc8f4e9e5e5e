// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "os/files.hpp"
#include "os/random.hpp"

namespace gridctl::os {

namespace {
constexpr int k_depth_max = 100;  // levels held open at once; what lies deeper is moved up to the root first

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// Removes the content of one tree. Continues after an error and keeps the first.
class TreeRemover {
 public:
  TreeRemover(const Path& path, int root_fd, const struct statx& root) : path_(path), root_fd_(root_fd), root_(root) {}

  Result<void> remove_content() {
    // Deep folders come up to the root while it is being read, so it is then read once more.
    do {
      lifted_now_ = false;
      empty_directory(root_fd_, 0);
    } while (lifted_now_ && !first_error_);
    if (first_error_) return *first_error_;
    return {};
  }

 private:
  // A file that another process has just removed is gone, as intended.
  void fail(int err, const char* verb, const char* name) {
    if (err != ENOENT && !first_error_) first_error_ = path_error(err, std::string(verb) + " '" + name + "' in", path_);
  }

  void empty_directory(int fd, int depth) {
    const int copy = ::openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    Directory directory(copy < 0 ? nullptr : ::fdopendir(copy));
    if (!directory) return fail(errno, "read", ".");
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(directory.get());
      if (entry == nullptr) {
        if (errno != 0) fail(errno, "read", ".");
        return;
      }
      if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
        remove(fd, entry->d_name, depth);
    }
  }

  void remove(int parent, const char* name, int depth) {
    if (::unlinkat(parent, name, 0) == 0) return;
    if (errno != EISDIR && errno != EPERM) return fail(errno, "remove", name);
    const int unlink_errno = errno;
    struct stat info {};
    if (::fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(info.st_mode))
      return fail(errno == ENOENT ? ENOENT : unlink_errno, "remove", name);
    const Fd child = open_directory(parent, name);
    if (!child.valid()) return fail(errno, "open", name);
    if (!on_same_mount(child.get())) return fail(EBUSY, "remove the mount point", name);
    ::fchmod(child.get(), 0700);  // where it is not ours, what follows tells
    if (depth >= k_depth_max) return lift(parent, name);
    empty_directory(child.get(), depth + 1);
    if (::unlinkat(parent, name, AT_REMOVEDIR) != 0) fail(errno, "remove", name);
  }

  // Opens as a path first, so that the mode of the opened file is changed, and never that of a link put in its place.
  Fd open_directory(int parent, const char* name) {
    Fd child{::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (child.valid() || errno != EACCES) return child;
    const Fd handle{::openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
    if (!handle.valid()) return child;
    const std::string link = "/proc/self/fd/" + std::to_string(handle.get());
    if (::chmod(link.c_str(), 0700) != 0) return child;
    return Fd{::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  }

  bool on_same_mount(int fd) const {
    struct statx info {};
    if (::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &info) != 0) return false;
    const bool ids = (info.stx_mask & root_.stx_mask & STATX_MNT_ID) != 0;  // kernels before 5.8 have none
    return info.stx_dev_major == root_.stx_dev_major && info.stx_dev_minor == root_.stx_dev_minor &&
           (!ids || info.stx_mnt_id == root_.stx_mnt_id);
  }

  void lift(int parent, const char* name) {
    const std::string moved = ".removing-" + random_id(13);
    if (::renameat(parent, name, root_fd_, moved.c_str()) != 0) return fail(errno, "move", name);
    lifted_now_ = true;
  }

  const Path& path_;
  int root_fd_;
  struct statx root_;
  std::optional<Error> first_error_;
  bool lifted_now_ = false;
};
}  // namespace

Result<void> remove_tree(const Path& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) return path_error(errno, "remove", path);
  const int unlink_errno = errno;
  if (::chmod(path.c_str(), 0700) != 0 && errno == ENOENT) return {};
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return {};
  if (fd < 0) return path_error(errno == ENOTDIR || errno == ELOOP ? unlink_errno : errno, "remove", path);
  const Fd root{fd};
  struct statx info {};
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_MNT_ID, &info) != 0)
    return path_error(errno, "remove", path);
  TRY(TreeRemover(path, fd, info).remove_content());
  if (::rmdir(path.c_str()) != 0 && errno != ENOENT) return path_error(errno, "remove", path);
  return {};
}

}  // namespace gridctl::os
