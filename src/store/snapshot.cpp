// SPDX-License-Identifier: Apache-2.0
#include "store/snapshot.hpp"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "store/store_state.hpp"

namespace gridctl::store {
namespace {

ScanOptions checkpoint_options() {
  ScanOptions options;
  options.skip_at_top = {std::string(k_commit_marker)};
  options.links_stay_inside = true;
  return options;
}

FileFact fact_of(std::string path, const os::FileStatus& status) {
  return {std::move(path), status.size, status.mtime_ns, status.ctime_ns, status.inode};
}

Listing listing_of(const std::vector<Seen>& seen) {
  Listing listing;
  for (const Seen& one : seen) {
    if (one.status.kind != os::FileKind::directory) listing.files.push_back(fact_of(one.path, one.status));
  }
  return listing;
}

Error changed() {
  Error error = make_error(Code::busy, "checkpoint directory changed while it was copied");
  error.retry = Retry::same_host_later;
  return error;
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {path.substr(0, slash), path.substr(slash + 1)};
}

const FileFact* find(const Listing& listing, const std::string& path) {
  const auto at = std::lower_bound(listing.files.begin(), listing.files.end(), path,
                                   [](const FileFact& file, const std::string& wanted) { return file.path < wanted; });
  return at != listing.files.end() && at->path == path ? &*at : nullptr;
}

class Copier {
 public:
  Copier(int source, int target, const os::Path& into, const SnapshotOptions& options)
      : source_(source), target_(target), into_(into), options_(options) {}

  Result<void> copy(const std::vector<Seen>& seen) {
    for (const Seen& one : seen) {
      if (one.status.kind == os::FileKind::directory) {
        TRY(os::make_directories_beneath(target_, one.path, 0700));
      } else if (one.status.kind == os::FileKind::symlink) {
        TRY(copy_link(one));
      } else {
        total_ += one.status.size;
        if (options_.bytes_max != 0 && total_ > options_.bytes_max) {
          return make_error(Code::no_space,
                            "checkpoint is larger than the " + format_size(options_.bytes_max) + " allowed");
        }
        TRY(copy_file(one));
      }
    }
    return {};
  }

  // The entry of the previous snapshot when this file has not changed since.
  [[nodiscard]] const Entry* unchanged(const Seen& seen) const {
    if (options_.previous == nullptr) return nullptr;
    const FileFact* before = find(options_.previous->listing, seen.path);
    if (before == nullptr || !(*before == fact_of(seen.path, seen.status))) return nullptr;
    const Entry* entry = options_.previous->tree.find(seen.path);
    return entry != nullptr && entry->kind == EntryKind::file ? entry : nullptr;
  }

 private:
  Result<void> copy_file(const Seen& seen) {
    if (unchanged(seen) != nullptr && os::link_file(options_.previous_directory / seen.path, into_ / seen.path))
      return {};
    auto from = os::open_beneath(source_, seen.path, O_RDONLY | O_NONBLOCK);
    if (!from) return from.error().code == Code::not_found ? changed() : std::move(from).error();
    TRY_ASSIGN(const os::Fd to, os::open_beneath(target_, seen.path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    return os::clone_file(from->get(), to.get()).context("while copying '" + sanitize(seen.path) + "'");
  }

  Result<void> copy_link(const Seen& seen) {
    const auto [parent, name] = split_path(seen.path);
    TRY_ASSIGN(const os::Fd from, os::open_beneath(source_, parent, O_RDONLY | O_DIRECTORY));
    TRY_ASSIGN(const std::string target, os::read_link_at(from.get(), name));
    TRY_ASSIGN(const os::Fd to, os::open_beneath(target_, parent, O_RDONLY | O_DIRECTORY));
    return os::make_link_at(to.get(), name, target);
  }

  int source_, target_;
  const os::Path& into_;
  const SnapshotOptions& options_;
  std::uint64_t total_ = 0;
};

// The copy's own modes are ours; the tree has the source's.
Result<Scan> hash_copy(int target, const Copier& copier, const std::vector<Seen>& seen, const SnapshotOptions& how) {
  std::unordered_map<std::string_view, const Seen*> sources;
  for (const Seen& one : seen) sources.emplace(one.path, &one);
  ScanOptions options = checkpoint_options();
  options.skip_at_top.clear();
  options.threads = how.threads;
  options.previous = how.previous != nullptr ? &how.previous->tree : nullptr;
  options.fingerprints = how.fingerprints;
  options.known = [&](const std::string& path) -> const Entry* {
    const auto source = sources.find(path);
    return source == sources.end() ? nullptr : copier.unchanged(*source->second);
  };
  TRY_ASSIGN(Scan scanned, scan(target, options));
  for (Entry& entry : scanned.tree.entries) {
    const auto source = sources.find(entry.path);
    if (source == sources.end()) return make_error(Code::internal, "snapshot holds something its source does not");
    if (entry.kind != EntryKind::symlink) entry.mode = static_cast<std::uint16_t>(source->second->status.mode & 0777u);
    if (entry.kind == EntryKind::file && entry.size != source->second->status.size) return changed();
  }
  return scanned;
}

}  // namespace

Result<Listing> list_checkpoint(int directory_fd) {
  std::vector<std::string> notes;
  TRY_ASSIGN(const std::vector<Seen> seen, walk(directory_fd, checkpoint_options(), notes));
  Listing listing = listing_of(seen);
  TRY_ASSIGN(const auto marker, os::status_at(directory_fd, k_commit_marker));
  if (marker) listing.marker = fact_of(std::string(k_commit_marker), *marker);
  return listing;
}

Inspect inspect_in(int directory_fd) {
  return [directory_fd](const FileFact& file) -> Inspection {
    auto fd = os::open_beneath(directory_fd, file.path, O_RDONLY | O_NONBLOCK);
    if (!fd) {  // a link is data; anything else that cannot be opened cannot be copied either
      return fd.error().code == Code::protocol_violation ? Inspection{}
                                                         : Inspection{FileState::torn, fd.error().message};
    }
    return inspect_file(file.path, file.size, reader_of(fd->get()));
  };
}

Result<Snapshot> take_snapshot(int source_fd, const Listing& expected, const os::Path& into,
                               const SnapshotOptions& options) {
  if (os::exists(into)) return make_error(Code::exists, "snapshot '" + into.native() + "' exists already");
  TRY(os::make_directories(into));
  const auto attempt = [&]() -> Result<Snapshot> {
    TRY_ASSIGN(const os::Fd target, os::open_file(into, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    Snapshot snapshot;
    TRY_ASSIGN(const std::vector<Seen> seen, walk(source_fd, checkpoint_options(), snapshot.notes));
    snapshot.listing = listing_of(seen);
    if (snapshot.listing.files != expected.files) return changed();
    snapshot.listing.marker = expected.marker;
    Copier copier(source_fd, target.get(), into, options);
    TRY(copier.copy(seen));
    TRY_ASSIGN(const Listing after, list_checkpoint(source_fd));
    if (after != expected) return changed();
    TRY_ASSIGN(Scan scanned, hash_copy(target.get(), copier, seen, options));
    snapshot.tree = std::move(scanned.tree);
    snapshot.notes.insert(snapshot.notes.end(), scanned.notes.begin(), scanned.notes.end());
    snapshot.manifest = to_manifest(snapshot.tree);
    snapshot.root = root_of(snapshot.manifest);
    return snapshot;
  };
  auto snapshot = attempt();
  if (!snapshot) static_cast<void>(os::remove_tree(into));
  return snapshot;
}

}  // namespace gridctl::store
