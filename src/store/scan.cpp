// SPDX-License-Identifier: Apache-2.0
#include "store/scan.hpp"

#include <fcntl.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "crypto/sha256.hpp"
#include "store/ignore.hpp"
#include "store/layout.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {
namespace {

constexpr int k_read_attempts = 3;         // of one file that changes while it is read
constexpr std::size_t k_notes_max = 1000;  // then they are only counted by their absence

std::string shown(std::string_view path) { return "'" + sanitize(path.substr(0, 200)) + "'"; }

Error changed(std::string_view path) {
  Error error = make_error(Code::busy, "file " + shown(path) + " changed while it was read");
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
    std::sort(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) { return a.path < b.path; });
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
    if (at_top &&
        std::find(options_.skip_at_top.begin(), options_.skip_at_top.end(), name) != options_.skip_at_top.end())
      return true;
    return options_.ignore_files && (name == ".git" || rules_.ignored(path, is_directory));
  }

  Result<void> visit(int fd, const std::string& prefix, const std::string& name, std::size_t depth) {
    const std::string path = prefix + name;
    TRY_ASSIGN(const auto status, os::status_at(fd, name));
    if (!status) {
      if (!options_.tolerate_vanished) return changed(path);
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
      note(path, "neither file, directory nor link");
      return {};
    }
    if (seen_.size() == k_entries_max) return make_error(Code::no_space, "directory holds more than 2,000,000 entries");
    seen_.push_back({path, *status});
    if (!is_directory) return {};
    if (depth + 1 >= k_depth_max) {
      note(path, "too deep; its content is left out");
      return {};
    }
    auto sub = os::open_beneath(fd, name, O_RDONLY | O_DIRECTORY);
    if (!sub) return sub.error().code == Code::not_found ? changed(path) : std::move(sub).error();
    return enter(sub->get(), path + "/", depth + 1);
  }

  const ScanOptions& options_;
  std::vector<std::string>& notes_;
  IgnoreRules rules_;
  std::vector<Seen> seen_;
};

// One attempt at one file. nullopt: it changed meanwhile.
Result<std::optional<Entry>> read_once(int fd, Entry entry, const ScanOptions& options, Bytes& buffer) {
  TRY_ASSIGN(const os::FileStatus before, os::status_of(fd));
  if (before.kind != os::FileKind::regular) return std::optional<Entry>();
  entry.size = before.size;
  entry.mode = static_cast<std::uint16_t>(before.mode & 0777u);
  std::uint64_t offset = 0;
  for (const std::uint32_t length : plan_chunks(entry.path, before.size, reader_of(fd))) {
    buffer.resize(length);
    TRY_ASSIGN(const std::size_t got, os::read_at(fd, buffer, offset));
    if (got != length) return std::optional<Entry>();
    const Digest digest = crypto::sha256(buffer);
    if (options.on_chunk) TRY(options.on_chunk(digest, buffer));
    entry.chunks.push_back({digest, length});
    offset += length;
  }
  TRY_ASSIGN(const os::FileStatus after, os::status_of(fd));
  const bool same = after.size == before.size && after.mtime_ns == before.mtime_ns && after.ctime_ns == before.ctime_ns;
  return same ? std::optional(std::move(entry)) : std::nullopt;
}

// nullopt: vanished and tolerated.
Result<std::optional<Entry>> read_file(int directory_fd, const Seen& seen, const ScanOptions& options, Bytes& buffer) {
  for (int attempt = 0; attempt < k_read_attempts; ++attempt) {
    auto file = os::open_beneath(directory_fd, seen.path, O_RDONLY | O_NONBLOCK);
    if (!file) {
      if (file.error().code != Code::not_found) return std::move(file).error();
      if (options.tolerate_vanished) return std::optional<Entry>();
      return changed(seen.path);
    }
    TRY_ASSIGN(auto entry, read_once(file->get(), {EntryKind::file, 0, seen.path, 0, {}, {}}, options, buffer));
    if (entry) return entry;
  }
  return changed(seen.path);
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

Result<Entry> read_link(int directory_fd, const Seen& seen) {
  const auto [parent, name] = split_path(seen.path);
  TRY_ASSIGN(const os::Fd fd, os::open_beneath(directory_fd, parent, O_RDONLY | O_DIRECTORY));
  TRY_ASSIGN(std::string target, os::read_link_at(fd.get(), name));
  return Entry{EntryKind::symlink, 0777, seen.path, 0, {}, std::move(target)};
}

}  // namespace

Result<std::vector<Seen>> walk(int directory_fd, const ScanOptions& options, std::vector<std::string>& notes) {
  Walk walk(options, notes);
  TRY(walk.enter(directory_fd, "", 0));
  return walk.take();
}

Result<Scan> scan(int directory_fd, const ScanOptions& options) {
  Scan result;
  TRY_ASSIGN(const std::vector<Seen> seen, walk(directory_fd, options, result.notes));
  std::vector<Entry> entries;
  entries.reserve(seen.size());
  Bytes buffer;
  std::uint64_t total = 0;
  for (const Seen& one : seen) {
    if (one.status.kind == os::FileKind::directory) {
      entries.push_back(
          {EntryKind::directory, static_cast<std::uint16_t>(one.status.mode & 0777u), one.path, 0, {}, {}});
    } else if (one.status.kind == os::FileKind::symlink) {
      TRY_ASSIGN(Entry entry, read_link(directory_fd, one));
      if (options.links_stay_inside && !link_stays_inside(entry.path, entry.target))
        result.notes.push_back(one.path + ": link that may lead out of the directory");
      else entries.push_back(std::move(entry));
    } else {
      if (options.bytes_max != 0 && one.status.size > options.bytes_max - std::min(total, options.bytes_max))
        return make_error(Code::no_space,
                          "directory holds more than the " + format_size(options.bytes_max) + " allowed");
      const Entry* known = options.known ? options.known(one.path) : nullptr;
      if (known != nullptr && known->size == one.status.size) {
        total += known->size;
        entries.push_back(*known);
        continue;
      }
      TRY_ASSIGN(auto entry, read_file(directory_fd, one, options, buffer));
      if (!entry) {
        result.notes.push_back(one.path + ": vanished");
        continue;
      }
      total += entry->size;
      entries.push_back(*std::move(entry));
    }
  }
  TRY_ASSIGN(result.tree, make_tree(std::move(entries), {options.bytes_max, k_entries_max, options.links_stay_inside}));
  return result;
}

Result<Scan> scan(const os::Path& directory, const ScanOptions& options) {
  TRY_ASSIGN(const os::Fd fd, os::open_file(directory, O_RDONLY | O_DIRECTORY));
  return scan(fd.get(), options).context("while reading '" + directory.native() + "'");
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
    return changed(entry->path);
  }
  return content;
}

}  // namespace gridctl::store
