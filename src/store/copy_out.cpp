// SPDX-License-Identifier: Apache-2.0
#include "store/copy_out.hpp"

#include <fcntl.h>

#include <string>

#include "os/entries.hpp"
#include "os/files.hpp"
#include "os/random.hpp"

namespace gridctl::store {
namespace {

Result<os::DirectoryLock> lock_target(const os::Path& directory) {
  TRY_ASSIGN(std::optional<os::DirectoryLock> mine, os::DirectoryLock::try_acquire(directory));
  if (!mine) return make_error(Code::busy, "another copy to '" + directory.native() + "' is under way");
  return *std::move(mine);
}

Result<void> remove_content(const os::Path& directory) {
  TRY_ASSIGN(const auto names, os::list_directory(directory));
  for (const std::string& name : names) TRY(os::remove_tree(directory / name));
  return {};
}

// Returns the folder in which a copy is made. Other users may write to its parent: a name that one of them has taken,
// as a directory or as a link, is skipped.
Result<os::Path> make_beside(const os::Path& target) {
  constexpr int k_names_tried = 8;
  if (target.has_parent_path()) TRY(os::make_directories(target.parent_path()));
  const os::Path usual = target.parent_path() / ("." + target.filename().native() + std::string(k_partial_mark));
  os::Path beside = usual;
  for (int i = 0; i < k_names_tried; ++i) {
    Result<void> made = os::make_directories(beside);
    if (!made && !os::exists(beside)) return std::move(made).error();
    if (const auto fd = os::open_file(beside, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)) {
      TRY_ASSIGN(const os::FileStatus owner, os::status_of(fd->get()));
      if (owner.is_ours && (owner.mode & 022) == 0) return beside;
    }
    beside = usual.native() + "." + os::random_id(8);
  }
  return make_error(Code::exists, "other processes use every name beside '" + target.native() + "'");
}

Result<void> make_anew(const Tree& tree, ChunkReader& chunks, const os::Path& target,
                       const MaterialiseOptions& options) {
  TRY_ASSIGN(const os::Path beside, make_beside(target));
  TRY_ASSIGN(const os::DirectoryLock mine, lock_target(beside));
  const auto fill = [&]() -> Result<void> {
    TRY(remove_content(beside));
    TRY(materialise(tree, chunks, beside, options));
    return os::rename_path(beside, target);
  };
  Result<void> made = fill();
  if (!made) static_cast<void>(os::remove_tree(beside));
  if (!made) return made;
  made = os::sync_directory(target.parent_path());
  if (!made) static_cast<void>(os::remove_tree(target));  // its name may not last: so that it can be copied again
  return made;
}

// In a folder such as /tmp, another user may have created the named directory in order to own the copy.
Result<void> check_owner(const os::Path& directory) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(directory, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(const os::FileStatus owner, os::status_of(fd.get()));
  const Result<os::Fd> parent = os::open_file(directory / "..", O_RDONLY | O_DIRECTORY);
  if (owner.is_ours || !parent) return {};
  TRY_ASSIGN(const os::FileStatus around, os::status_of(parent->get()));
  if ((around.mode & 01002) != 01002) return {};
  return make_error(Code::exists, "directory '" + directory.native() + "' belongs to another user");
}

// The mark is created first and removed last, so that files beside it are known to belong to a copy.
Result<void> fill_in_place(const Tree& tree, ChunkReader& chunks, const os::Path& directory,
                           MaterialiseOptions options) {
  TRY(check_owner(directory));
  TRY_ASSIGN(const os::DirectoryLock mine, lock_target(directory));
  const os::Path mark = directory / k_partial_mark;
  const auto remove_ours = [&]() -> Result<void> {
    for (const Entry& entry : tree.entries)
      if (entry.path.find('/') == std::string::npos) TRY(os::remove_tree(directory / entry.path));
    return {};
  };
  if (os::exists(mark)) TRY(remove_ours());
  options.beside = k_partial_mark;
  if (!os::exists(mark)) {
    TRY_ASSIGN(const auto names, os::list_directory(directory));
    if (!names.empty()) return make_error(Code::exists, "directory '" + directory.native() + "' is not empty");
    TRY(os::write_file_durably(mark, ""));
  }
  const auto fill = [&]() -> Result<void> {
    TRY(materialise(tree, chunks, directory, options));
    TRY(os::remove_file(mark));
    return os::sync_directory(directory);
  };
  Result<void> filled = fill();
  if (!filled && remove_ours()) static_cast<void>(os::remove_file(mark));
  return filled;
}

}  // namespace

Result<void> copy_out(const Tree& tree, ChunkReader& chunks, const os::Path& directory, unsigned threads,
                      std::function<Result<void>(std::uint64_t)> room) {
  os::Path target = directory.lexically_normal();
  if (!target.has_filename()) target = target.parent_path();  // "result/"
  MaterialiseOptions options;
  options.sync = true;
  options.threads = threads;
  options.room = std::move(room);
  if (os::exists(target)) return fill_in_place(tree, chunks, target, options);
  return make_anew(tree, chunks, target, options);
}

}  // namespace gridctl::store
