// SPDX-License-Identifier: Apache-2.0
#include "store/dir_remote.hpp"

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/random.hpp"
#include "store/tree.hpp"

namespace gridctl::store {
namespace {

constexpr const char* k_unfinished = ".tmp";  // no object's name begins with a dot
constexpr std::size_t k_piece = 4u << 20;     // bytes read and written at once
constexpr Duration k_unfinished_age = std::chrono::hours{24};

bool is_name_part(std::string_view part) {
  const auto fits = [](char c) { return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '-'; };
  return !part.empty() && part.size() <= k_component_max && part[0] != '.' && std::ranges::all_of(part, fits);
}

class DirRemote final : public Backend {
 public:
  DirRemote(os::Path directory, std::string_view mark) : directory_(std::move(directory)), mark_(mark) {}

  Result<std::vector<Object>> list(std::string_view prefix) override {
    TRY_ASSIGN(const os::Fd root, open_root());
    std::vector<Object> objects;
    TRY(list_in(directory_, "", prefix, objects));
    std::ranges::sort(objects, {}, &Object::name);
    return objects;
  }

  Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) override {
    TRY(check(name));
    TRY_ASSIGN(const os::Fd root, open_root());
    TRY_ASSIGN(const os::Fd file, open_object(root, name));
    TRY_ASSIGN(const os::FileStatus status, os::status_of(file.get()));
    const std::uint64_t left = status.size - std::min(status.size, offset);
    Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>({size, k_object_read_max, left})));
    TRY_ASSIGN(const std::size_t got, os::read_at(file.get(), bytes, offset));
    bytes.resize(got);
    return bytes;
  }

  Result<void> put(std::string_view name, std::uint64_t size, const ReadAt& content, const Moved& moved) override {
    TRY(check(name));
    TRY_ASSIGN(const os::Fd root, open_root());
    TRY_ASSIGN(const bool there, is_there(root, name, size));
    if (there) return {};
    TRY_ASSIGN(const os::Path unfinished, begin(root));
    Result<void> done = write(unfinished, size, content, moved);
    if (done) done = make_parents(root, name);
    if (done) done = os::rename_path(unfinished, path_of(name));
    if (!done) return abandon(unfinished, std::move(done).error());
    return sync_parent(name);
  }

  Result<bool> put_new(std::string_view name, ByteView content) override {
    TRY(check(name));
    TRY_ASSIGN(const os::Fd root, open_root());
    TRY_ASSIGN(const os::Path unfinished, begin(root));
    const auto give = [content](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
      const ByteView part = content.subspan(offset, size);
      return Bytes(part.begin(), part.end());
    };
    Result<void> written = write(unfinished, content.size(), give, {});
    if (written) written = make_parents(root, name);
    if (!written) return abandon(unfinished, std::move(written).error());
    Result<bool> named = name_if_free(unfinished, path_of(name));
    if (!named) return abandon(unfinished, std::move(named).error());
    TRY(os::remove_file(unfinished));
    TRY(sync_parent(name));
    return named;
  }

  Result<void> remove(std::string_view name) override {
    TRY(check(name));
    TRY_ASSIGN(const os::Fd root, open_root());
    if (!os::exists(path_of(name))) return {};
    TRY(os::remove_file(path_of(name)));
    return os::sync_directory(path_of(name).parent_path());
  }

 private:
  [[nodiscard]] os::Path path_of(std::string_view name) const { return directory_ / name; }

  static Result<void> check(std::string_view name) {
    if (is_object_name(name)) return {};
    return make_error(Code::protocol_violation, "'" + sanitize(name, 80) + "' is not a valid object name");
  }

  // The root stays open while it is used, so that its disk is not unmounted in between.
  [[nodiscard]] Result<os::Fd> open_root() const {
    auto root = os::open_file(directory_, O_RDONLY | O_DIRECTORY);
    if (!root && root.error().code != Code::not_found) return root;
    if (root && mark_.empty()) return root;
    if (root) {
      TRY_ASSIGN(const auto mark, os::status_at(root->get(), mark_));
      if (mark && mark->kind == os::FileKind::regular) return root;
    }
    return make_error(Code::host_unreachable, "'" + directory_.native() + "' " +
                                                  (root ? "does not hold copies: it has no file '" + mark_ + "'"
                                                        : std::string("does not exist")) +
                                                  "; is its disk mounted?");
  }

  // An error half-way is an error; files that are not objects belong to others and are skipped.
  Result<void> list_in(const os::Path& folder, const std::string& before, std::string_view prefix,
                       std::vector<Object>& objects) const {
    TRY_ASSIGN(const os::Fd fd, os::open_file(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(fd.get()));
    for (const std::string& part : names) {
      const std::string name = before + part;
      if (!is_name_part(part) || name.size() > k_object_name_max) continue;
      TRY_ASSIGN(const auto status, os::status_at(fd.get(), part));
      if (!status) continue;  // removed since the listing
      if (status->kind == os::FileKind::regular && name.starts_with(prefix)) {
        if (objects.size() == k_objects_max)
          return make_error(Code::protocol_violation, "'" + directory_.native() + "' has too many objects");
        objects.push_back({name, status->size});
      }
      const std::string inside = name + "/";
      if (status->kind == os::FileKind::directory && (inside.starts_with(prefix) || prefix.starts_with(inside)))
        TRY(list_in(folder / part, inside, prefix, objects));
    }
    return {};
  }

  static Result<os::Fd> open_object(const os::Fd& root, std::string_view name) {
    TRY_ASSIGN(os::Fd file, os::open_beneath(root.get(), name, O_RDONLY | O_NONBLOCK));
    TRY_ASSIGN(const os::FileStatus status, os::status_of(file.get()));
    if (status.kind != os::FileKind::regular)
      return make_error(Code::protocol_violation, "'" + std::string(name) + "' is not a file");
    return file;
  }

  // An earlier writer may have been stopped before the file was durable: then it becomes durable now.
  Result<bool> is_there(const os::Fd& root, std::string_view name, std::uint64_t size) const {
    const Result<os::Fd> file = open_object(root, name);
    if (!file && file.error().code == Code::not_found) return false;
    if (!file) return file.error();
    TRY_ASSIGN(const os::FileStatus status, os::status_of(file->get()));
    if (status.size != size) return false;
    TRY(os::sync_fd(file->get()));
    TRY(sync_parent(name));
    return true;
  }

  Result<void> sync_parent(std::string_view name) const { return os::sync_directory(path_of(name).parent_path()); }

  Result<os::Path> begin(const os::Fd& root) {
    TRY(os::make_directories_beneath(root.get(), k_unfinished));
    if (!swept_) TRY(sweep());
    swept_ = true;
    return directory_ / k_unfinished / (os::random_id(16) + ".part");
  }

  Result<void> sweep() const {
    const os::Path folder = directory_ / k_unfinished;
    const WallTime now = os::system_clock().wall();
    TRY_ASSIGN(const std::vector<std::string> names, os::list_directory(folder));
    for (const std::string& name : names) {
      TRY_ASSIGN(const auto status, os::status_of(folder / name));
      if (status && Duration{now.ms * 1'000'000 - status->mtime_ns} > k_unfinished_age)
        TRY(os::remove_file(folder / name));
    }
    return {};
  }

  static Result<void> write(const os::Path& path, std::uint64_t size, const ReadAt& content, const Moved& moved) {
    TRY_ASSIGN(const os::Fd file, os::open_file(path, O_WRONLY | O_CREAT | O_EXCL));
    for (std::uint64_t done = 0; done < size;) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(k_piece, size - done));
      TRY_ASSIGN(const Bytes piece, content(done, wanted));
      if (piece.size() != wanted) return make_error(Code::io, "the data to copy became shorter");
      TRY(os::write_all(file.get(), piece));
      os::start_writing_back(file.get(), done, piece.size());
      done += piece.size();
      if (moved && !moved(done)) return make_error(Code::cancelled, "copying was stopped");
    }
    return os::sync_fd(file.get());
  }

  static Error abandon(const os::Path& unfinished, Error why) {
    if (const Result<void> removed = os::remove_file(unfinished); !removed)
      return std::move(why).with_context(removed.error().one_line());
    return why;
  }

  // Each created folder is durable in its parent.
  Result<void> make_parents(const os::Fd& root, std::string_view name) const {
    for (std::size_t slash = name.find('/'); slash != std::string_view::npos; slash = name.find('/', slash + 1)) {
      const std::string_view folder = name.substr(0, slash);
      if (os::exists(path_of(folder))) continue;
      TRY(os::make_directories_beneath(root.get(), folder));
      TRY(sync_parent(folder));
    }
    return {};
  }

  // Adds a second name if the file system has hard links; otherwise renames, one process at a time.
  Result<bool> name_if_free(const os::Path& unfinished, const os::Path& path) const {
    const Result<void> linked = os::link_file(unfinished, path);
    if (linked) return true;
    if (linked.error().code != Code::io) return linked.error();
    TRY_ASSIGN(const auto taken, os::status_of(path));
    if (taken) return false;
    TRY_ASSIGN(const os::FileLock lock, os::FileLock::acquire(directory_ / k_unfinished / "lock"));
    TRY_ASSIGN(const auto taken_now, os::status_of(path));
    if (taken_now) return false;
    TRY(os::rename_path(unfinished, path));
    return true;
  }

  os::Path directory_;
  std::string mark_;
  bool swept_ = false;
};

}  // namespace

bool is_object_name(std::string_view name) {
  if (name.size() > k_object_name_max) return false;
  for (;;) {
    const std::size_t slash = name.find('/');
    if (!is_name_part(name.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    name.remove_prefix(slash + 1);
  }
}

std::unique_ptr<Backend> open_dir_remote(os::Path directory, std::string_view mark) {
  return std::make_unique<DirRemote>(std::move(directory), mark);
}

}  // namespace gridctl::store
