// SPDX-License-Identifier: Apache-2.0
#include "agent/inside_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"

namespace gridctl::agent {

namespace {
constexpr std::size_t k_listing_max = 64u << 20;  // bytes; about half a million entries
constexpr std::string_view k_part = ".gridctl-part";

std::optional<wire::StreamEntry> entry_of(const os::Path& path, std::string relative, const os::FileStatus& status) {
  wire::StreamEntry entry{std::move(relative), wire::EntryType::file, status.size, status.mode, {}};
  if (status.kind == os::FileKind::other) return std::nullopt;
  if (status.kind == os::FileKind::directory) entry.type = wire::EntryType::directory, entry.bytes = 0;
  if (status.kind == os::FileKind::symlink) {
    std::error_code failed;
    entry.type = wire::EntryType::link;
    entry.target = std::filesystem::read_symlink(path, failed).string();
    if (failed || entry.target.size() > wire::k_stream_path_max) return std::nullopt;
  }
  return entry;
}

// Returns whether the file begins with the bytes of that digest.
Result<bool> begins_with(int fd, std::uint64_t bytes, const std::string& digest) {
  crypto::Sha256 hash;
  std::array<std::byte, 64 * 1024> buffer;
  for (std::uint64_t at = 0; at < bytes;) {
    const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), bytes - at);
    TRY_ASSIGN(const std::size_t count, os::read_at(fd, std::span(buffer).first(wanted), at));
    if (count == 0) return false;
    hash.update(ByteView{buffer}.first(count));
    at += count;
  }
  return to_hex(hash.finish()) == digest;
}

Result<void> check_beginning(int fd, const os::Path& path, const wire::StreamOpen& request) {
  if (request.offset == 0) return {};
  TRY_ASSIGN(const bool same, begins_with(fd, request.offset, request.digest));
  if (!same)
    return make_error(Code::refused, sanitize(path.string()) + " does not begin with the part that was copied before");
  if (::lseek(fd, static_cast<off_t>(request.offset), SEEK_SET) < 0)
    return errno_error(errno, "cannot continue in " + sanitize(path.string()));
  return {};
}

Result<os::FileStatus> status_here(const os::Path& path) {
  TRY_ASSIGN(const auto status, os::status_of(path));
  if (!status) return make_error(Code::not_found, sanitize(path.string()) + " does not exist in the job");
  return *status;
}
}  // namespace

Result<os::Fd> list_entries(const os::Path& asked, bool deep) {
  std::error_code failed;
  const os::Path top = std::filesystem::canonical(asked, failed);  // a link that was named is followed
  TRY_ASSIGN(const os::FileStatus status, status_here(failed ? asked : top));
  std::string text;
  struct Open {
    os::Path path;
    std::string relative;
    os::FileStatus status;
  };
  std::vector<Open> open{{failed ? asked : top, "", status}};
  while (!open.empty()) {
    const Open one = std::move(open.back());
    open.pop_back();
    const auto entry = entry_of(one.path, one.relative, one.status);
    if (entry) text += wire::encode(*entry) + "\n";
    if (text.size() > k_listing_max) return make_error(Code::refused, sanitize(asked.string()) + " has too many files");
    if (!deep || one.status.kind != os::FileKind::directory) continue;
    TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(one.path));
    for (const std::string& name : names) {
      const std::string below = one.relative.empty() ? name : one.relative + "/" + name;
      const auto found = os::status_of(one.path / name);
      if (found && *found && below.size() <= wire::k_stream_path_max) open.push_back({one.path / name, below, **found});
    }
  }
  TRY_ASSIGN(os::Fd file, os::open_memory());
  TRY(os::write_all(file.get(), as_bytes(text)));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Result<ReadFile> open_to_read(const os::Path& path, const wire::StreamOpen& request) {
  ReadFile file{os::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)), 0};
  if (!file.fd.valid() && errno == ENOENT) return status_here(path).error();
  if (!file.fd.valid()) return errno_error(errno, "cannot read " + sanitize(path.string()));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(file.fd.get()));
  if (status.kind != os::FileKind::regular)
    return make_error(Code::refused, sanitize(path.string()) + " is not a regular file");
  file.bytes = status.size;
  TRY(check_beginning(file.fd.get(), path, request));
  return file;
}

os::Path part_of(const os::Path& path) {
  return path.parent_path() / ("." + path.filename().string() + std::string(k_part));
}

Result<os::Fd> open_to_write(const os::Path& path, const wire::StreamOpen& request) {
  std::error_code failed;
  const os::Path folder = path.has_filename() ? path.parent_path() : path;
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (failed) return errno_error(failed.value(), "cannot make the directory " + sanitize(folder.string()));
  if (!path.has_filename()) return os::open_memory();  // a directory has no content
  if (std::filesystem::is_directory(path, failed))
    return make_error(Code::refused, sanitize(path.string()) + " is a directory");
  const int empty = request.offset == 0 ? O_TRUNC : 0;
  os::Fd file(::open(part_of(path).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | empty, 0600));
  if (!file.valid()) return errno_error(errno, "cannot write " + sanitize(path.string()));
  TRY(check_beginning(file.get(), path, request));
  if (request.offset > 0) TRY(os::set_size(file.get(), request.offset));
  return file;
}

Result<void> complete_write(const os::Path& path, unsigned mode) {
  if (!path.has_filename()) return {};
  const os::Path part = part_of(path);
  if (::chmod(part.c_str(), static_cast<mode_t>(mode & 0777)) != 0)
    return errno_error(errno, "cannot set the mode of " + sanitize(path.string()));
  return os::rename_path(part, path);
}

}  // namespace gridctl::agent
