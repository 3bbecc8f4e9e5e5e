// SPDX-License-Identifier: Apache-2.0
#include "store/scan.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "os/entries.hpp"
#include "os/mutex.hpp"
#include "store/cut.hpp"
#include "store/file_workers.hpp"
#include "store/ignore.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {
namespace {

constexpr int k_read_attempts = 3;         // of one file that changes while it is read
constexpr std::size_t k_notes_max = 1000;  // then they are only counted by their absence

Error file_changed(std::string_view path) {
  Error error = make_error(Code::busy, "file " + quoted_path(path) + " changed while it was read");
  error.retry = Retry::same_host_later;
  return error;
}

class Walk {
 public:
  Walk(const ScanOptions& options, std::vector<std::string>& notes) : options_(options), notes_(notes) {}

  Result<void> enter(int fd, const std::string& prefix, std::size_t depth) {
    if (options_.ignore_files) {
      for (const char* name : {".gitignore", ".gridctlignore"}) TRY(read_rules(fd, prefix, name));
    }
    TRY_ASSIGN(const auto names, os::list_directory(fd));
    for (const std::string& name : names) TRY(visit(fd, prefix, name, depth));
    return {};
  }
  std::vector<Seen> take() {
    std::ranges::sort(seen_, {}, &Seen::path);
    return std::move(seen_);
  }

 private:
  void note(std::string_view path, const std::string& why) {
    if (notes_.size() < k_notes_max) notes_.push_back(std::string(path) + ": " + why);
  }

  Result<void> read_rules(int fd, const std::string& prefix, const char* name) {
    auto file = os::open_beneath(fd, name, O_RDONLY | O_NONBLOCK);
    if (!file) return {};  // none, or a link: git does not follow these either
    TRY_ASSIGN(const os::FileStatus status, os::status_of(file->get()));
    if (status.kind != os::FileKind::regular || status.size > k_ignore_file_max) return {};
    TRY_ASSIGN(const Bytes text, reader_of(file->get())(0, k_ignore_file_max));
    rules_.add(prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1), as_text(text));
    return {};
  }

  [[nodiscard]] bool left_out(const std::string& name, const std::string& path, bool is_directory, bool at_top) const {
    if (at_top && std::ranges::find(options_.skip_at_top, name) != options_.skip_at_top.end()) return true;
    return options_.ignore_files && (name == ".git" || rules_.ignored(path, is_directory));
  }

  // An unreadable file or folder gives a note if that is tolerated.
  Result<void> note_unreadable(std::string_view path, Error error) {
    if (!options_.tolerate_unreadable || error.code == Code::busy || error.code == Code::no_space) return error;
    note(path, error.message);
    if (options_.unreadable != nullptr && options_.unreadable->size() < k_notes_max)
      options_.unreadable->push_back(std::string(path) + ": " + error.message);
    return {};
  }

  Result<void> visit(int fd, const std::string& prefix, const std::string& name, std::size_t depth) {
    const std::string path = prefix + name;
    const auto seen = os::status_at(fd, name);
    if (!seen) return note_unreadable(path, seen.error());
    const auto& status = *seen;
    if (!status) {
      if (!options_.tolerate_vanished) return file_changed(path);
      note(path, "vanished");
      return {};
    }
    const bool is_directory = status->kind == os::FileKind::directory;
    if (left_out(name, path, is_directory, prefix.empty())) return {};
    if (const auto fine = check_path(path); !fine) {
      note(path, fine.error().message);
      return {};
    }
    if (status->kind == os::FileKind::other) {
      note(path, "not a file, directory or link");
      return {};
    }
    if (status->kind == os::FileKind::regular && options_.tolerate_unreadable)
      if (const auto may = os::may_read(fd, name); !may) return note_unreadable(path, may.error());
    if (seen_.size() == k_entries_max)
      return make_error(Code::no_space, "directory contains more than 2,000,000 entries");
    seen_.push_back({path, *status});
    if (!is_directory) return {};
    if (depth + 1 >= k_depth_max) {
      note(path, "nested too deep; its contents are omitted");
      return {};
    }
    if (options_.enters && !options_.enters(path)) return {};
    auto sub = os::open_beneath(fd, name, O_RDONLY | O_DIRECTORY);
    if (!sub && sub.error().code == Code::not_found && !options_.tolerate_vanished) return file_changed(path);
    if (!sub) return note_unreadable(path, std::move(sub).error());
    if (const std::string why = why_not_sent(sub->get()); !why.empty()) {
      seen_.pop_back();
      note(path, why);
      return {};
    }
    const Result<void> entered = enter(sub->get(), path + "/", depth + 1);
    return entered ? entered : note_unreadable(path, entered.error());
  }

  // Returns "" for a folder that is taken.
  [[nodiscard]] std::string why_not_sent(int fd) const {
    const std::vector<std::string>& names = options_.skip_folders_with;
    const bool has_all = !names.empty() && std::ranges::all_of(names, [fd](const std::string& name) {
      const auto seen = os::status_at(fd, name);
      return seen && *seen;
    });
    if (has_all) return "holds " + join(names, " and ") + ", which are never sent";
    if (options_.ignore_files && os::has_attribute(fd, k_pulled_attribute))
      return "fetched by 'gridctl job pull'; to send it, name it under file_mounts or copy it";
    return "";
  }

  const ScanOptions& options_;
  std::vector<std::string>& notes_;
  IgnoreRules rules_;
  std::vector<Seen> seen_;
};

// Hashes this many zeros once: files with holes are large, and all such chunks are alike.
Digest digest_of_zeros(std::uint32_t size) {
  static os::Mutex mutex;
  static std::map<std::uint32_t, Digest> known;  // by size
  const os::MutexLock lock(mutex);
  const auto at = known.find(size);
  return at != known.end() ? at->second : known.emplace(size, crypto::sha256(Bytes(size))).first->second;
}

// Reads one file, and again if it changed in the meantime.
class ScanFile : public FileWork {
 public:
  using Taken = std::function<void(Result<Entry>)>;  // an error: why it is left out
  // Returns null if the file is left out.
  static Result<std::unique_ptr<FileWork>> open(int directory_fd, const std::string& path, const ScanOptions& options,
                                                Taken taken, int attempt = 1) {
    auto file = os::open_beneath(directory_fd, path, O_RDONLY | O_NONBLOCK);
    if (!file && file.error().code == Code::not_found) {
      if (!options.tolerate_vanished && !options.tolerate_unreadable) return file_changed(path);
      taken(make_error(Code::not_found, "vanished"));
      return std::unique_ptr<FileWork>();
    }
    if (!file && options.tolerate_unreadable) {
      taken(std::move(file).error());
      return std::unique_ptr<FileWork>();
    }
    TRY_ASSIGN(os::Fd fd, std::move(file));
    return begin(std::unique_ptr<ScanFile>(new ScanFile(directory_fd, options, std::move(taken), attempt)),
                 std::move(fd), path);
  }

  // Reads a file that is already open; it cannot be opened again if it changes.
  static Result<std::unique_ptr<FileWork>> of(os::Fd fd, const std::string& name, const ScanOptions& options,
                                              Taken taken) {
    return begin(std::unique_ptr<ScanFile>(new ScanFile(-1, options, std::move(taken), k_read_attempts)), std::move(fd),
                 name);
  }

  [[nodiscard]] std::size_t chunks() const override { return entry_.chunks.size(); }

  Result<void> work(std::size_t first, std::size_t count, os::LargeBuffer& buffer) override {
    if (torn_) return {};
    const std::span<Chunk> chunks = std::span(entry_.chunks).subspan(first, count);
    std::size_t size = 0;
    for (const Chunk& chunk : chunks) size += chunk.size;
    if (options_.on_progress) TRY(options_.on_progress(size));
    if (is_hole(offsets_[first], size)) {
      for (Chunk& chunk : chunks) chunk.digest = digest_of_zeros(chunk.size);
      return {};
    }
    const std::span<std::byte> content = buffer.take(size);
    const auto read = os::read_at(fd_.get(), content, offsets_[first]);
    if (!read && !options_.tolerate_unreadable) return read.error();
    if (!read) unreadable_ = true;
    if (!read || *read != size) torn_ = true;
    if (torn_) return {};
    const ByteView one = content.first(chunks[0].size), other = content.subspan(chunks[0].size);
    const bool known = recognise(first, one), other_known = count == 1 || recognise(first + 1, other);
    if (!known && !other_known && count > 1) std::tie(chunks[0].digest, chunks[1].digest) = crypto::sha256(one, other);
    else if (!known) chunks[0].digest = crypto::sha256(one);
    else if (!other_known) chunks[1].digest = crypto::sha256(other);
    TRY(give(first, one, known));
    return count == 1 ? Result<void>() : give(first + 1, other, other_known);
  }

  Result<std::unique_ptr<FileWork>> finish() override {
    TRY_ASSIGN(const os::FileStatus after, os::status_of(fd_.get()));
    const bool same =
        after.size == before_.size && after.mtime_ns == before_.mtime_ns && after.ctime_ns == before_.ctime_ns;
    const bool grew = options_.tolerate_growth && after.size >= before_.size && attempt_ == k_read_attempts;
    if ((same || grew) && !torn_) {
      taken_(std::move(entry_));
      return std::unique_ptr<FileWork>();
    }
    if (unreadable_ || (attempt_ == k_read_attempts && options_.tolerate_unreadable)) {
      taken_(make_error(Code::io, unreadable_ ? "the disk cannot read it" : "it changed every time it was read"));
      return std::unique_ptr<FileWork>();
    }
    if (attempt_ == k_read_attempts) return file_changed(entry_.path);
    return open(directory_fd_, entry_.path, options_, std::move(taken_), attempt_ + 1);
  }

 private:
  ScanFile(int directory_fd, const ScanOptions& options, Taken taken, int attempt)
      : directory_fd_(directory_fd), options_(options), taken_(std::move(taken)), attempt_(attempt) {}

  static Result<std::unique_ptr<FileWork>> begin(std::unique_ptr<ScanFile> work, os::Fd fd, const std::string& path) {
    work->fd_ = std::move(fd);
    work->entry_.path = path;
    TRY(work->plan());
    return std::unique_ptr<FileWork>(std::move(work));
  }

  // Returns true if the content is not wanted, and the file system has none.
  [[nodiscard]] bool is_hole(std::uint64_t offset, std::uint64_t size) const {
    if (options_.fingerprints != nullptr || options_.on_chunk || options_.on_chunk_after) return false;
    const std::optional<std::uint64_t> data = os::next_data(fd_.get(), offset);
    return data && *data >= offset + size;
  }

  // Returns whether the chunk is the same as the earlier one at its place; then its digest is known.
  bool recognise(std::size_t number, ByteView content) {
    const Digest* const was = options_.fingerprints != nullptr ? before(number) : nullptr;
    if (was == nullptr || !options_.fingerprints->recognise(*was, content)) return false;
    entry_.chunks[number].digest = *was;
    return true;
  }

  Result<void> give(std::size_t number, ByteView content, bool recognised) {
    const Digest& digest = entry_.chunks[number].digest;
    if (options_.fingerprints != nullptr && !recognised) options_.fingerprints->note(digest, content, before(number));
    if (options_.on_chunk_after) return options_.on_chunk_after(digest, content, before(number));
    return options_.on_chunk ? options_.on_chunk(digest, content) : Result<void>();
  }

  // Returns the earlier chunk at this position: the same file, offset and size.
  [[nodiscard]] const Digest* before(std::size_t number) const {
    if (previous_ == nullptr) return nullptr;
    const auto place = before_at_.find(offsets_[number]);
    return place != before_at_.end() && place->second->size == entry_.chunks[number].size ? &place->second->digest
                                                                                          : nullptr;
  }

  void remember_previous() {
    previous_ = options_.previous != nullptr ? earlier_file(*options_.previous, entry_.path) : nullptr;
    if (previous_ == nullptr) return;
    std::uint64_t offset = 0;
    for (const Chunk& chunk : previous_->chunks) {
      before_at_.emplace(offset, &chunk);
      offset += chunk.size;
    }
  }

  Result<void> plan() {
    TRY_ASSIGN(before_, os::status_of(fd_.get()));
    torn_ = before_.kind != os::FileKind::regular;
    if (torn_) return {};
    entry_.size = before_.size;
    entry_.mode = static_cast<std::uint16_t>(before_.mode & 0777u);
    remember_previous();
    std::uint64_t offset = 0;
    for (const std::uint32_t length : plan_chunks(entry_.path, before_.size, reader_of(fd_.get()))) {
      entry_.chunks.push_back({{}, length});
      offsets_.push_back(offset);
      offset += length;
    }
    return {};
  }

  int directory_fd_;
  const ScanOptions& options_;
  Taken taken_;
  int attempt_;
  os::Fd fd_;
  os::FileStatus before_;
  Entry entry_;
  std::vector<std::uint64_t> offsets_;
  const Entry* previous_ = nullptr;
  std::unordered_map<std::uint64_t, const Chunk*> before_at_;
  std::atomic<bool> torn_ = false;  // it is not what it was when it was opened
  std::atomic<bool> unreadable_ = false;
};

// Appends the entries of these files, and notes those that are left out.
Result<void> read_files(int directory_fd, const std::vector<const Seen*>& files, const ScanOptions& options,
                        std::vector<Entry>& entries, std::vector<std::string>& notes) {
  os::Mutex mutex;  // of entries and notes
  return work_on_files(files.size(), options.threads, [&](std::size_t number) {
    const std::string& path = files[number]->path;
    return ScanFile::open(directory_fd, path, options, [&](Result<Entry> entry) {
      const os::MutexLock lock(mutex);
      if (entry) entries.push_back(*std::move(entry));
      else if (notes.size() < k_notes_max) notes.push_back(path + ": " + entry.error().message);
    });
  });
}

Result<Entry> read_link(int directory_fd, const Seen& seen, const std::vector<std::string>& known_as) {
  const auto [parent, name] = split_path(seen.path);
  TRY_ASSIGN(const os::Fd fd, os::open_beneath(directory_fd, parent, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(std::string target, os::read_link_at(fd.get(), name));
  return Entry{EntryKind::symlink, 0777, seen.path, 0, {}, target_inside(seen.path, target, known_as)};
}

}  // namespace

std::string target_inside(const std::string& path, const std::string& target,
                          const std::vector<std::string>& known_as) {
  for (const std::string& root : known_as) {
    if (root.size() < 2 || !target.starts_with(root) || (target.size() > root.size() && target[root.size()] != '/'))
      continue;
    const os::Path inside = os::Path(target.substr(std::min(root.size() + 1, target.size()))).lexically_normal();
    const os::Path from = os::Path(path).parent_path();
    const std::string relative = inside.empty() ? os::Path(".").lexically_relative(from.empty() ? "." : from).string()
                                                : inside.lexically_relative(from.empty() ? "." : from).string();
    if (link_stays_inside(path, relative)) return relative;
  }
  return target;
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

namespace {
void keep_only(std::vector<Seen>& seen, const std::function<bool(const Seen&)>& wanted) {
  std::set<std::string, std::less<>> parents;  // of what is wanted
  std::erase_if(seen, [&](const Seen& one) {
    if (one.status.kind == os::FileKind::directory) return false;
    if (!wanted(one)) return true;
    for (std::size_t slash = one.path.find('/'); slash != std::string::npos; slash = one.path.find('/', slash + 1))
      parents.insert(one.path.substr(0, slash));
    return false;
  });
  std::erase_if(
      seen, [&](const Seen& one) { return one.status.kind == os::FileKind::directory && !parents.contains(one.path); });
}
}  // namespace

Result<std::vector<Seen>> walk(int directory_fd, const ScanOptions& options, std::vector<std::string>& notes) {
  Walk walk(options, notes);
  TRY(walk.enter(directory_fd, "", 0));
  std::vector<Seen> seen = walk.take();
  if (options.only) keep_only(seen, options.only);
  return seen;
}

namespace {

Result<Scan> scan_all(int directory_fd, const ScanOptions& options) {
  Scan result;
  TRY_ASSIGN(const std::vector<Seen> seen, walk(directory_fd, options, result.notes));
  std::vector<Entry> entries;
  entries.reserve(seen.size());
  std::vector<const Seen*> files;
  std::uint64_t total = 0;
  for (const Seen& one : seen) {
    if (one.status.kind == os::FileKind::directory) {
      entries.push_back(
          {EntryKind::directory, static_cast<std::uint16_t>(one.status.mode & 0777u), one.path, 0, {}, {}});
    } else if (one.status.kind == os::FileKind::symlink) {
      Result<Entry> link = read_link(directory_fd, one, options.known_as);
      if (!link && !options.tolerate_unreadable) return link.error();
      if (!link) {
        result.notes.push_back(one.path + ": " + link.error().message);
        continue;
      }
      Entry entry = *std::move(link);
      if (options.links_stay_inside && !link_stays_inside(entry.path, entry.target))
        result.notes.push_back(one.path + ": link that may lead out of the directory");
      else entries.push_back(std::move(entry));
    } else {
      if (options.bytes_max != 0 && one.status.size > options.bytes_max - std::min(total, options.bytes_max))
        return make_error(Code::no_space,
                          "directory contains more than the " + format_size(options.bytes_max) + " allowed");
      total += one.status.size;
      const Entry* known = options.known ? options.known(one.path) : nullptr;
      if (known == nullptr || known->size != one.status.size) {
        files.push_back(&one);
        continue;
      }
      entries.push_back(*known);
      if (options.fingerprints != nullptr) options.fingerprints->keep(*known);
    }
  }
  TRY(read_files(directory_fd, files, options, entries, result.notes));
  TRY_ASSIGN(result.tree, make_tree(std::move(entries), {options.bytes_max, k_entries_max, options.links_stay_inside}));
  return result;
}

}  // namespace

Result<Scan> scan(int directory_fd, const ScanOptions& options) {
  Result<Scan> scanned = scan_all(directory_fd, options);
  if (options.fingerprints != nullptr) options.fingerprints->end_scan(scanned.has_value());
  return scanned;
}

Result<Scan> scan(const os::Path& directory, const ScanOptions& options) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(directory, O_RDONLY | O_DIRECTORY));
  return scan(fd.get(), options).context("while reading '" + directory.native() + "'");
}

Result<Entry> scan_file(const os::Path& file, const std::string& name, const ScanOptions& options) {
  TRY_ASSIGN(os::Fd fd, os::open_file(file, O_RDONLY | O_NONBLOCK));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(fd.get()));
  if (status.kind != os::FileKind::regular)
    return make_error(Code::bad_job_file, file.string() + " is neither a file nor a directory");
  Entry entry;
  TRY(work_on_files(1, options.threads, [&](std::size_t) {
    return ScanFile::of(std::move(fd), name, options, [&](Result<Entry> read) {
      if (read) entry = *std::move(read);
    });
  }));
  return entry;
}

DirectoryChunks::DirectoryChunks(int directory_fd, const Tree& tree) : directory_fd_(directory_fd) {
  for (const Entry& entry : tree.entries) {
    std::uint64_t offset = 0;
    for (const Chunk& chunk : entry.chunks) {
      places_.try_emplace(chunk.digest, Place{&entry, offset, chunk.size});
      offset += chunk.size;
    }
  }
}

Result<Bytes> DirectoryChunks::read(const Digest& digest) {
  const auto place = places_.find(digest);
  if (place == places_.end()) return make_error(Code::not_found, "chunk " + to_hex(digest) + " is not in this tree");
  const auto& [entry, offset, size] = place->second;
  if (entry != open_entry_) {
    open_entry_ = nullptr;
    TRY_ASSIGN(open_file_, os::open_beneath(directory_fd_, entry->path, O_RDONLY | O_NONBLOCK));
    open_entry_ = entry;
  }
  Bytes content(size);
  TRY_ASSIGN(const std::size_t got, os::read_at(open_file_.get(), content, offset));
  if (got != size || crypto::sha256(content) != digest) {
    open_entry_ = nullptr;
    return file_changed(entry->path);
  }
  return content;
}

}  // namespace gridctl::store
