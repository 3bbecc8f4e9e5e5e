// SPDX-License-Identifier: Apache-2.0
#include "store/materialise.hpp"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "base/time.hpp"
#include "crypto/sha256.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/mutex.hpp"
#include "store/file_workers.hpp"
#include "store/write_order.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_hole_min = 64 * 1024;    // bytes; shorter runs of zeros are written
constexpr std::uint64_t k_room_asked = 256u << 20;  // bytes written before the disk is looked at anew
constexpr std::int64_t k_apart_ms = 1000;  // between the times of two files; file systems round them to 1 s or less
constexpr std::size_t k_files_synced_max = 100;  // one by one; more go to the disk together, with all else that waits

// Chooses times in the order of writing: the newest entry of each kind gets the present time.
class WriteTimes {
 public:
  explicit WriteTimes(const Tree& tree)
      : now_(os::system_clock().wall()),
        last_file_(last_write(tree.entries, EntryKind::file)),
        last_directory_(last_write(tree.entries, EntryKind::directory)) {}

  // A file system that keeps no times is no reason to fail.
  void set(int fd, const Entry& entry) const {
    if (entry.written == 0) return;
    const std::uint32_t last = entry.kind == EntryKind::file ? last_file_ : last_directory_;
    static_cast<void>(os::set_changed_at(fd, {now_.ms - std::int64_t{last - entry.written} * k_apart_ms}));
  }

 private:
  WallTime now_;
  std::uint32_t last_file_, last_directory_;
};

// Writes one file.
class WriteFile : public FileWork {
 public:
  WriteFile(const Entry& entry, ChunkReader& chunks, const WriteTimes& times, bool sync, os::Fd fd, bool shared,
            std::function<Result<void>(std::uint64_t)> wrote)
      : entry_(entry), chunks_(chunks), times_(times), sync_(sync), fd_(std::move(fd)), shared_(shared), wrote_(std::move(wrote)) {
    std::uint64_t offset = 0;
    for (const Chunk& chunk : entry.chunks) {
      offsets_.push_back(offset);
      offset += chunk.size;
    }
  }

  [[nodiscard]] std::size_t chunks() const override { return entry_.chunks.size(); }

  Result<void> work(std::size_t first, std::size_t count, os::LargeBuffer&) override {
    for (std::size_t number = first; number < first + count; ++number) {
      Result<void> written = write(entry_.chunks[number], offsets_[number]);
      if (!written) return std::move(written).context("while writing '" + sanitize(entry_.path) + "'");
    }
    return {};
  }

  Result<std::unique_ptr<FileWork>> finish() override {
    if (entry_.size != 0) TRY(os::set_size(fd_.get(), entry_.size));
    TRY(os::set_mode(fd_.get(), entry_.mode & 0777u));
    times_.set(fd_.get(), entry_);
    if (sync_) TRY(os::sync_fd(fd_.get()));
    return std::unique_ptr<FileWork>();
  }

 private:
  [[nodiscard]] bool is_there(const Chunk& chunk, std::uint64_t offset) const {
    Bytes content(chunk.size);
    const auto got = os::read_at(fd_.get(), content, offset);
    return got && *got == chunk.size && crypto::sha256(content) == chunk.digest;
  }

  Result<void> write(const Chunk& chunk, std::uint64_t offset) {
    if (shared_ && is_there(chunk, offset)) return {};
    TRY_ASSIGN(const Bytes content, chunks_.read(chunk.digest));
    if (content.size() != chunk.size) {
      return make_error(Code::checkpoint_damaged, "chunk " + to_hex(chunk.digest) + " has " +
                                                      std::to_string(content.size()) + " bytes, not " +
                                                      std::to_string(chunk.size));
    }
    if (shared_ || content.size() < k_hole_min || !all_zero(content)) TRY(os::write_at(fd_.get(), content, offset));
    if (sync_) os::start_writing_back(fd_.get(), offset, content.size());
    return wrote_(chunk.size);
  }

  const Entry& entry_;
  ChunkReader& chunks_;
  const WriteTimes& times_;
  const bool sync_;
  os::Fd fd_;
  const bool shared_;
  std::function<Result<void>(std::uint64_t)> wrote_;
  std::vector<std::uint64_t> offsets_;
};

class Builder {
 public:
  Builder(int root, const Tree& tree, ChunkReader& chunks, const MaterialiseOptions& options)
      : root_(root), tree_(tree), chunks_(chunks), options_(options), times_(tree) {}

  Result<void> build() {
    std::vector<const Entry*> files;
    for (const Entry& entry : tree_.entries) {
      if (entry.kind == EntryKind::directory) TRY(os::make_directories_beneath(root_, entry.path, 0700));
      if (entry.kind == EntryKind::file) files.push_back(&entry);
    }
    one_by_one_ = files.size() <= k_files_synced_max;
    TRY(work_on_files(files.size(), options_.threads, [&](std::size_t number) { return begin(*files[number]); }));
    for (const Entry& entry : tree_.entries) {
      if (entry.kind == EntryKind::symlink) TRY(link(entry));
    }
    // Goes deepest first, so that a read-only directory is filled before its mode is set.
    for (auto entry = tree_.entries.rbegin(); entry != tree_.entries.rend(); ++entry) {
      if (entry->kind == EntryKind::directory) TRY(finish_directory(*entry));
    }
    if (options_.sync && !one_by_one_) return os::sync_file_system(root_);
    return options_.sync ? os::sync_fd(root_) : Result<void>();
  }

 private:
  Result<std::unique_ptr<FileWork>> begin(const Entry& entry) {
    auto fd = os::open_beneath(root_, entry.path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (!fd) return std::move(fd).error().with_context("while writing '" + sanitize(entry.path) + "'");
    const bool shared = options_.share && options_.share(entry, fd->get());
    return std::unique_ptr<FileWork>(std::make_unique<WriteFile>(entry, chunks_, times_, options_.sync && one_by_one_,
                                                                 *std::move(fd), shared,
                                                                 [this](std::uint64_t bytes) { return wrote(bytes); }));
  }

  Result<void> wrote(std::uint64_t bytes) {
    const os::MutexLock lock(mutex_);
    done_ += bytes;
    if (!options_.room || done_ - asked_ < k_room_asked) return {};
    asked_ = done_;
    return options_.room(0);
  }

  Result<void> link(const Entry& entry) {
    if (options_.links_stay_inside && !link_stays_inside(entry.path, entry.target)) {
      return make_error(Code::checkpoint_damaged,
                        "link '" + sanitize(entry.path) + "' may lead out of the directory and is not created");
    }
    const std::size_t slash = entry.path.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : entry.path.substr(0, slash);
    TRY_ASSIGN(const os::Fd fd, os::open_beneath(root_, parent, O_RDONLY | O_DIRECTORY));
    return os::make_link_at(fd.get(), slash == std::string::npos ? entry.path : entry.path.substr(slash + 1),
                            entry.target);
  }

  Result<void> finish_directory(const Entry& entry) {
    TRY_ASSIGN(const os::Fd fd, os::open_beneath(root_, entry.path, O_RDONLY | O_DIRECTORY));
    times_.set(fd.get(), entry);
    if (options_.sync && one_by_one_) TRY(os::sync_fd(fd.get()));
    return os::set_mode(fd.get(), entry.mode & 0777u);
  }

  int root_;
  const Tree& tree_;
  ChunkReader& chunks_;
  const MaterialiseOptions& options_;
  const WriteTimes times_;
  bool one_by_one_ = true;
  os::Mutex mutex_;
  std::uint64_t done_ GRIDCTL_GUARDED_BY(mutex_) = 0, asked_ GRIDCTL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

Result<void> materialise(const Tree& tree, ChunkReader& chunks, const os::Path& directory,
                         const MaterialiseOptions& options) {
  if (options.room) TRY(options.room(tree.written_bytes()));
  const bool was_there = os::exists(directory);
  TRY(os::make_directories(directory));
  TRY_ASSIGN(const os::Fd root, os::open_file(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  TRY_ASSIGN(auto names, os::list_directory(root.get()));
  std::erase(names, options.beside);
  if (!names.empty()) return make_error(Code::exists, "directory '" + directory.native() + "' is not empty");
  auto built = Builder(root.get(), tree, chunks, options).build();
  if (built) return options.sync && !was_there ? os::sync_directory(directory.parent_path()) : Result<void>();
  if (!was_there) {
    static_cast<void>(os::remove_tree(directory));
  } else if (const auto left = os::list_directory(root.get())) {
    for (const std::string& name : *left)
      if (name != options.beside) static_cast<void>(os::remove_tree(directory / name));
  }
  return std::move(built).context("while writing a tree to '" + directory.native() + "'");
}

}  // namespace gridctl::store
