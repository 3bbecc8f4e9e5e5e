// SPDX-License-Identifier: Apache-2.0
// Handles directory entries: listing, status, links, and single steps (rename, remove, resize) for code that builds
// files. Nothing here follows a symbolic link in the last component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::os {

enum class FileKind : std::uint8_t { regular, directory, symlink, other };

struct FileStatus {
  FileKind kind = FileKind::other;
  unsigned mode = 0;  // permission bits, 07777
  std::uint64_t size = 0;
  std::uint64_t blocks_bytes = 0;  // what it takes on disk
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  std::uint64_t inode = 0, device = 0;
  bool is_ours = false;  // of the user we act as
  bool operator==(const FileStatus&) const = default;
};

// Returns the names in a directory, sorted, without "." and "..". A failure half-way is an error, never a shorter list.
[[nodiscard]] Result<std::vector<std::string>> list_directory(int directory_fd);
[[nodiscard]] Result<std::vector<std::string>> list_directory(const Path& directory);

[[nodiscard]] Result<FileStatus> status_of(int fd);
// Returns the status of `name`, which is one component; nullopt if it does not exist.
[[nodiscard]] Result<std::optional<FileStatus>> status_at(int directory_fd, std::string_view name);
[[nodiscard]] Result<std::optional<FileStatus>> status_of(const Path& path);
[[nodiscard]] Result<std::string> read_link_at(int directory_fd, std::string_view name);  // at most 4,095 bytes
[[nodiscard]] Result<void> make_link_at(int directory_fd, std::string_view name, std::string_view target);

// Returns whether we may read the file with that name, which is not a link.
[[nodiscard]] Result<void> may_read(int directory_fd, std::string_view name);
// Gives a second name (hard link) to a file that is not a link itself.
[[nodiscard]] Result<void> link_file_at(int from_directory_fd, int to_directory_fd, std::string_view name);
[[nodiscard]] Result<void> link_file(const Path& from, const Path& to);    // a second name (hard link)
[[nodiscard]] Result<void> rename_path(const Path& from, const Path& to);  // atomic, replaces; not synced
[[nodiscard]] Result<void> remove_file(const Path& path);                  // missing is success
[[nodiscard]] Result<bool> touch_file(const Path& path);                   // sets mtime to now; false when missing
[[nodiscard]] Result<void> set_mode(int fd, unsigned mode);
[[nodiscard]] Result<void> set_size(int fd, std::uint64_t size);
[[nodiscard]] Result<void> write_at(int fd, ByteView bytes, std::uint64_t offset);  // pwrite, all of it
// Asks the kernel to begin writing these bytes to the disk, so that a later sync waits less. This is only a hint.
void start_writing_back(int fd, std::uint64_t offset, std::uint64_t size);
// Calls pread until `into` is full or the file ends; returns the number of bytes read.
[[nodiscard]] Result<std::size_t> read_at(int fd, std::span<std::byte> into, std::uint64_t offset);
// Returns the position of the next byte at or after `offset` that is not in a hole; UINT64_MAX if only a hole follows,
// and nullopt if the file system cannot answer. Other reads through read_at are not disturbed.
[[nodiscard]] std::optional<std::uint64_t> next_data(int fd, std::uint64_t offset);

// Returns the time of the last access; nullopt: the file cannot be asked. File systems may keep it only roughly; terminals
// keep it to eight seconds. Follows a link.
[[nodiscard]] std::optional<WallTime> accessed_at(const Path& path);

// Sets an extended attribute without a value: a mark that programs do not see and that a copy does not have. Returns
// false where the file system has no such attributes.
bool set_attribute(const Path& directory, const std::string& name);
[[nodiscard]] bool has_attribute(int fd, const std::string& name);

}  // namespace gridctl::os
