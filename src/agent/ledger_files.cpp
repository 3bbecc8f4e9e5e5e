// SPDX-License-Identifier: Apache-2.0
#include "agent/ledger_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"

namespace gridctl::agent {
namespace {

constexpr std::string_view k_prefix = "gridctl-leases.";
constexpr std::string_view k_lock_suffix = ".lock";
constexpr std::string_view k_legacy_folder = "gridctl-leases";  // of version 1.0: one file `ledger` for all users
constexpr std::uint64_t k_file_bytes_max = 4ull << 20;          // 256 leases of 16 KiB
constexpr int k_names_tried = 16;                               // at random, where others have taken the first

// Parses "gridctl-leases.1000" or "gridctl-leases.1000.3".
std::optional<unsigned> user_of(std::string_view name) {
  if (!name.starts_with(k_prefix)) return std::nullopt;
  name.remove_prefix(k_prefix.size());
  const auto user = take_number<unsigned>(name);
  const bool whole = name.empty() || (name[0] == '.' && parse_number<unsigned>(name.substr(1)));
  return whole ? user : std::nullopt;
}

std::string base_name() { return std::string(k_prefix) + std::to_string(::geteuid()); }

struct Opened {
  os::Fd fd;
  struct stat info {};
};

// Opens a regular file without following links or waiting.
std::optional<Opened> open_regular(int directory, const std::string& name, int flags) {
  Opened opened{os::Fd(::openat(directory, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600))};
  if (!opened.fd.valid() || ::fstat(opened.fd.get(), &opened.info) != 0 || !S_ISREG(opened.info.st_mode))
    return std::nullopt;
  return opened;
}

Result<std::string> content_of(const Opened& file) {
  std::string content(std::min(static_cast<std::uint64_t>(file.info.st_size), k_file_bytes_max), '\0');
  TRY_ASSIGN(const std::size_t got, os::read_at(file.fd.get(), std::as_writable_bytes(std::span(content)), 0));
  content.resize(got);
  return content;
}

bool is_safe(const struct stat& folder) {
  const bool owned = folder.st_uid == 0 || folder.st_uid == ::geteuid();
  return owned && ((folder.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (folder.st_mode & S_ISVTX) != 0);
}

}  // namespace

Result<LedgerFolder> LedgerFolder::open(const os::Path& directory) {
  // Only root can write the default's parents, and some systems have a link there.
  const int no_link = is_one_of(directory.native(), {"/var/tmp"}) ? 0 : O_NOFOLLOW;
  os::Fd fd;
  for (const bool made : {false, true}) {
    fd = os::Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | no_link));
    if (fd.valid() || errno != ENOENT || made) break;
    // Only an empty folder that already belongs to us is opened up to others.
    if (::mkdir(directory.c_str(), 0700) != 0) {
      if (errno != EEXIST) break;
      continue;
    }
    fd = os::Fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    struct stat info {};
    if (fd.valid() && ::fstat(fd.get(), &info) == 0 && info.st_uid == ::geteuid() && ::fchmod(fd.get(), 01777) != 0)
      return errno_error(errno, "cannot open up the lease folder " + directory.string());
    break;
  }
  if (!fd.valid() && (errno == ELOOP || errno == ENOTDIR))
    return make_error(Code::refused, "the lease folder " + directory.string() + " is a link or a file, not a folder");
  if (!fd.valid()) return errno_error(errno, "cannot open the lease folder " + directory.string());
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error(errno, "cannot read the lease folder " + directory.string());
  if (!is_safe(info))
    return make_error(Code::refused, "the lease folder " + directory.string() +
                                         " is not safe: it must belong to root or to you, and be sticky where others "
                                         "may write");
  return LedgerFolder(std::move(fd));
}

namespace {

// Visits regular files of the folder whose names contain a user and that belong to that user: a name alone gives no
// right.
template <class Each>
Result<void> each_own_file(int directory, const Each& each) {
  TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(directory));
  for (const std::string& name : names) {
    const auto user = user_of(name);
    struct stat info {};
    if (user && ::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
        info.st_uid == *user)
      each(name, *user);
  }
  return {};
}

bool is_ours_alone(const struct stat& info) { return info.st_uid == ::geteuid() && (info.st_mode & 077) == 0; }

}  // namespace

Result<std::vector<LedgerFile>> LedgerFolder::others() const {
  std::map<unsigned, std::string> found;  // one per user, the first
  TRY(each_own_file(directory_.get(), [&](const std::string& name, unsigned user) {
    if (user == ::geteuid() || found.contains(user)) return;
    const auto file = open_regular(directory_.get(), name, O_RDONLY);
    if (!file || file->info.st_uid != user) return;
    if (auto content = content_of(*file)) found[user] = *std::move(content);
  }));
  std::vector<LedgerFile> files;
  for (auto& [user, content] : found) files.push_back({user, std::move(content)});
  // A supervisor of an older version may still be running.
  const os::Fd legacy(
      ::openat(directory_.get(), std::string(k_legacy_folder).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (legacy.valid())
    if (const auto file = open_regular(legacy.get(), "ledger", O_RDONLY))
      if (auto content = content_of(*file)) files.push_back({file->info.st_uid, *std::move(content)});
  return files;
}

Result<std::optional<std::string>> LedgerFolder::own_name() const {
  std::optional<std::string> first;
  TRY(each_own_file(directory_.get(), [&](const std::string& name, unsigned user) {
    if (user == ::geteuid() && !first) first = name;
  }));
  return first;
}

Result<std::string> LedgerFolder::own() const {
  TRY_ASSIGN(const std::optional<std::string> name, own_name());
  const auto file = name ? open_regular(directory_.get(), *name, O_RDONLY) : std::nullopt;
  return file && file->info.st_uid == ::geteuid() ? content_of(*file) : Result<std::string>(std::string());
}

Result<LedgerFolder::Own> LedgerFolder::lock_own(Duration patience, os::Clock& clock) const {
  std::optional<Opened> lock;
  std::string name;
  for (int tries = 0; tries < k_names_tried && !lock; ++tries) {
    TRY_ASSIGN(const std::optional<std::string> known, own_name());
    struct stat taken {};
    name = known.value_or(tries == 0 ? base_name() : base_name() + "." + std::to_string(os::random_u64() >> 33));
    if (!known && ::fstatat(directory_.get(), name.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0) continue;
    // Other users cannot open the lock file, so they cannot lock it.
    lock = open_regular(directory_.get(), name + std::string(k_lock_suffix), O_RDWR | O_CREAT);
    if (!lock && (errno == ENOSPC || errno == EROFS || errno == EDQUOT || errno == EMFILE))
      return errno_error(errno, "cannot lock our file in the lease folder");
    if (lock && is_ours_alone(lock->info)) break;
    lock.reset();
    // Another user's file is where our lock was: our file continues under an unpredictable name.
    const std::string other = base_name() + "." + std::to_string(os::random_u64() >> 33);
    if (known) ::renameat(directory_.get(), known->c_str(), directory_.get(), other.c_str());
  }
  if (!lock) return make_error(Code::busy, "other users have taken every name for our file in the lease folder");
  const BootTime give_up = clock.boot() + patience;
  Duration pause = std::chrono::microseconds{100};
  while (::flock(lock->fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return errno_error(errno, "cannot lock the lease ledger");
    if (clock.boot() > give_up)
      return make_error(Code::busy,
                        "the lease ledger has been locked by another process for " + format_duration(patience));
    os::pause_for(pause);
    pause = std::min<Duration>(pause * 2, std::chrono::milliseconds{4});
  }
  ::futimens(lock->fd.get(), nullptr);  // what looks old is cleared away from /var/tmp
  return Own(directory_.get(), name, std::move(lock->fd));
}

Result<std::string> LedgerFolder::Own::read() const {
  const auto file = open_regular(directory_, name_, O_RDONLY);
  if (!file && errno == ENOENT) return std::string();
  if (!file || file->info.st_uid != ::geteuid())
    return make_error(Code::busy, "our file in the lease folder is not readable");
  return content_of(*file);
}

Result<void> LedgerFolder::Own::write(std::string_view content) const {
  const std::string draft = name_ + "." + os::random_id(12);
  os::Fd fd(::openat(directory_, draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return errno_error(errno, "cannot write the lease ledger");
  auto written = os::write_all(fd.get(), as_bytes(content));
  if (written && ::fchmod(fd.get(), 0644) != 0) written = errno_error(errno, "cannot share the lease ledger");
  if (written && ::renameat(directory_, draft.c_str(), directory_, name_.c_str()) != 0)
    written = errno_error(errno, "cannot write the lease ledger");
  if (!written) ::unlinkat(directory_, draft.c_str(), 0);
  return written;
}

}  // namespace gridctl::agent
