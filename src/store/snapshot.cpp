// SPDX-License-Identifier: Apache-2.0
#include "store/snapshot.hpp"

#include <fcntl.h>

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "base/text.hpp"
#include "os/entries.hpp"
#include "store/store_state.hpp"
#include "store/write_order.hpp"

namespace gridctl::store {
namespace {

constexpr std::uint16_t k_folder_mode = 0755;  // of one that only an earlier snapshot had

ScanOptions checkpoint_options() {
  ScanOptions options;
  options.skip_at_top = {std::string(k_commit_marker)};
  options.links_stay_inside = true;
  options.tolerate_unreadable = true;
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

Error directory_changed() {
  Error error = make_error(Code::busy, "checkpoint directory changed while it was copied");
  error.retry = Retry::same_host_later;
  return error;
}

bool has_number(std::string_view name) {
  return std::ranges::any_of(name, is_digit);
}

struct Within {
  bool any_file = false, any_taken = false;
};
// Returns the entries of a folder; `seen` is ascending by path, so that all beneath "FOLDER/" are adjacent.
Within within(const std::string& folder, const std::vector<Seen>& seen, const std::function<bool(const Seen&)>& taken) {
  const std::string prefix = folder + "/";
  Within found;
  auto one = std::lower_bound(seen.begin(), seen.end(), prefix,
                              [](const Seen& seen_one, const std::string& at) { return seen_one.path < at; });
  for (; one != seen.end() && one->path.starts_with(prefix) && !found.any_taken; ++one) {
    found.any_file = found.any_file || one->status.kind != os::FileKind::directory;
    found.any_taken = taken(*one);
  }
  return found;
}

// Returns the selected part of what was seen. A folder of which nothing is taken is dropped too, if that is no
// accident: part of it was left out, or its name has a number and it will be filled.
std::vector<Seen> selected(const std::vector<Seen>& seen, const Selection& selection) {
  const auto taken = [&](const Seen& one) {
    return one.status.kind != os::FileKind::directory && !selection.left_out.contains(one.path) &&
           !selection.from_previous.contains(one.path);
  };
  std::vector<Seen> out;
  for (const Seen& one : seen) {
    if (one.status.kind != os::FileKind::directory) {
      if (taken(one)) out.push_back(one);
      continue;
    }
    const Within content = within(one.path, seen, taken);
    if (content.any_taken || (!content.any_file && !has_number(one.path))) out.push_back(one);
  }
  return out;
}

// Checks that the selected files have not changed; logs may have grown.
Result<void> check_unchanged(const std::vector<FileFact>& now, const Listing& expected, const Selection& selection) {
  const auto counts = [&](const std::string& path) {
    return !selection.left_out.contains(path) && !selection.from_previous.contains(path);
  };
  for (const FileFact& file : expected.files) {
    if (!counts(file.path)) continue;
    const FileFact* found = find_file(now, file.path);
    if (found == nullptr) return directory_changed();
    const bool grown = selection.growing.contains(file.path) && found->inode == file.inode && found->size >= file.size;
    if (!grown && !(*found == file)) return directory_changed();
  }
  for (const FileFact& file : now)
    if (counts(file.path) && find_file(expected.files, file.path) == nullptr) return directory_changed();
  return {};
}

class Copier {
 public:
  Copier(int source, int target, const os::Path& into, const Listing& expected, const SnapshotOptions& options)
      : source_(source), target_(target), into_(into), expected_(expected), options_(options) {}

  Result<void> copy(const std::vector<Seen>& seen, std::vector<std::string>& notes) {
    for (const Seen& one : seen) {
      Result<void> copied = copy_one(one);
      if (copied) continue;
      if (!options_.as_left || copied.error().code == Code::no_space) return copied;
      notes.push_back(one.path + ": " + copied.error().message);
    }
    for (const std::string& path : options_.selection.from_previous) TRY(take_over(path));
    return {};
  }

  // Returns the entry of the previous snapshot if this file has not changed since.
  [[nodiscard]] const Entry* unchanged(const Seen& seen) const {
    if (options_.previous == nullptr) return nullptr;
    const FileFact* before = find_file(options_.previous->listing.files, seen.path);
    if (before == nullptr || !(*before == fact_of(seen.path, seen.status))) return nullptr;
    return previous_file(seen.path);
  }
  [[nodiscard]] const Entry* previous_file(const std::string& path) const {
    if (options_.previous == nullptr) return nullptr;
    const Entry* entry = options_.previous->tree.find(path);
    return entry != nullptr && entry->kind == EntryKind::file ? entry : nullptr;
  }

 private:
  Result<void> copy_one(const Seen& one) {
    if (one.status.kind == os::FileKind::directory) return os::make_directories_beneath(target_, one.path, 0700);
    if (one.status.kind == os::FileKind::symlink) return copy_link(one);
    total_ += one.status.size;
    if (options_.bytes_max != 0 && total_ > options_.bytes_max)
      return make_error(Code::no_space, "checkpoint is larger than the " + format_size(options_.bytes_max) + " allowed");
    return copy_file(one);
  }

  // Takes the file from the previous snapshot, because the source is being rewritten.
  Result<void> take_over(const std::string& path) {
    if (options_.previous == nullptr)
      return make_error(Code::not_found, "no earlier snapshot contains '" + sanitize(path) + "'");
    const Entry* entry = options_.previous->tree.find(path);
    if (entry == nullptr) return {};  // it was left out then, too
    if (const std::string parent = split_path(path).first; parent != ".")
      TRY(os::make_directories_beneath(target_, parent, 0700));
    if (entry->kind == EntryKind::symlink) {
      const auto [parent, name] = split_path(path);
      TRY_ASSIGN(const os::Fd to, os::open_beneath(target_, parent, O_RDONLY | O_DIRECTORY));
      return os::make_link_at(to.get(), name, entry->target);
    }
    return os::link_file(options_.previous_directory / path, into_ / path);
  }

  Result<void> copy_file(const Seen& seen) {
    if (unchanged(seen) != nullptr && os::link_file(options_.previous_directory / seen.path, into_ / seen.path))
      return {};
    if (options_.is_still && link_in(seen)) return {};
    auto from = os::open_beneath(source_, seen.path, O_RDONLY | O_NONBLOCK);
    if (!from) return from.error().code == Code::not_found ? directory_changed() : std::move(from).error();
    TRY_ASSIGN(const os::Fd to, os::open_beneath(target_, seen.path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    TRY(os::clone_file(from->get(), to.get()).context("while copying '" + sanitize(seen.path) + "'"));
    const FileFact* listed = find_file(expected_.files, seen.path);
    if (listed == nullptr || !options_.selection.growing.contains(seen.path)) return {};
    TRY_ASSIGN(const os::FileStatus copied, os::status_of(to.get()));
    return copied.size < listed->size ? directory_changed() : os::set_size(to.get(), listed->size);
  }

  // A second name takes neither time nor space.
  Result<void> link_in(const Seen& seen) {
    const auto [parent, name] = split_path(seen.path);
    TRY_ASSIGN(const os::Fd from, os::open_beneath(source_, parent, O_RDONLY | O_DIRECTORY));
    TRY_ASSIGN(const os::Fd to, os::open_beneath(target_, parent, O_RDONLY | O_DIRECTORY));
    return os::link_file_at(from.get(), to.get(), name);
  }

  Result<void> copy_link(const Seen& seen) {
    const auto [parent, name] = split_path(seen.path);
    TRY_ASSIGN(const os::Fd from, os::open_beneath(source_, parent, O_RDONLY | O_DIRECTORY));
    TRY_ASSIGN(const std::string target, os::read_link_at(from.get(), name));
    TRY_ASSIGN(const os::Fd to, os::open_beneath(target_, parent, O_RDONLY | O_DIRECTORY));
    return os::make_link_at(to.get(), name, target_inside(seen.path, target, options_.known_as));
  }

  int source_, target_;
  const os::Path& into_;
  const Listing& expected_;
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
  options.fingerprints = how.as_left ? nullptr : how.fingerprints;
  const Selection& selection = how.selection;
  options.known = [&](const std::string& path) -> const Entry* {
    if (selection.from_previous.contains(path)) return copier.previous_file(path);
    const auto source = sources.find(path);
    return source == sources.end() ? nullptr : copier.unchanged(*source->second);
  };
  TRY_ASSIGN(Scan scanned, scan(target, options));
  for (Entry& entry : scanned.tree.entries) {
    const auto source = sources.find(entry.path);
    if (selection.from_previous.contains(entry.path) || source == sources.end()) {
      const Entry* before = how.previous != nullptr ? how.previous->tree.find(entry.path) : nullptr;
      if (before != nullptr) entry.mode = before->mode;
      else if (entry.kind == EntryKind::directory) entry.mode = k_folder_mode;
      else if (!how.as_left) return make_error(Code::internal, "snapshot contains something its source does not");
      continue;
    }
    if (entry.kind != EntryKind::symlink) entry.mode = static_cast<std::uint16_t>(source->second->status.mode & 0777u);
    if (entry.kind == EntryKind::file && entry.size != source->second->status.size && !how.as_left &&
        !selection.growing.contains(entry.path))
      return directory_changed();
  }
  number_writes(scanned.tree.entries, [&](const Entry& entry) -> std::int64_t {
    if (const auto source = sources.find(entry.path); source != sources.end()) return source->second->status.mtime_ns;
    const FileFact* before = how.previous != nullptr ? find_file(how.previous->listing.files, entry.path) : nullptr;
    return before != nullptr ? before->mtime_ns : 0;
  });
  return scanned;
}

}  // namespace

Result<Listing> list_checkpoint(int directory_fd) {
  std::vector<std::string> notes;
  ScanOptions options = checkpoint_options();
  Listing unreadable;
  options.unreadable = &unreadable.unreadable;
  TRY_ASSIGN(const std::vector<Seen> seen, walk(directory_fd, options, notes));
  Listing listing = listing_of(seen);
  listing.unreadable = std::move(unreadable.unreadable);
  TRY_ASSIGN(const auto marker, os::status_at(directory_fd, k_commit_marker));
  if (marker) listing.marker = fact_of(std::string(k_commit_marker), *marker);
  return listing;
}

Inspect inspect_in(int directory_fd) {
  return [directory_fd](const FileFact& file) -> Inspection {
    auto fd = os::open_beneath(directory_fd, file.path, O_RDONLY | O_NONBLOCK);
    if (!fd) {  // a link is data; anything else that cannot be opened cannot be copied either
      return fd.error().code == Code::protocol_violation ? Inspection{FileState::whole, ""}
                                                         : Inspection{FileState::torn, fd.error().message};
    }
    return inspect_file(file.path, file.size, reader_of(fd->get()));
  };
}

ReadListed read_in(int directory_fd) {
  return [directory_fd](const FileFact& file, std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    TRY_ASSIGN(const os::Fd fd, os::open_beneath(directory_fd, file.path, O_RDONLY | O_NONBLOCK));
    return reader_of(fd.get())(offset, size);
  };
}

namespace {

// Returns the listing of the copy: the listed facts and, for files that were taken over, the facts that they had then.
Listing listing_taken(const Listing& expected, const SnapshotOptions& options) {
  Listing listing;
  listing.marker = expected.marker;
  const Selection& selection = options.selection;
  for (const FileFact& file : expected.files)
    if (!selection.left_out.contains(file.path) && !selection.from_previous.contains(file.path))
      listing.files.push_back(file);
  if (options.previous == nullptr) return listing;
  for (const FileFact& file : options.previous->listing.files)
    if (selection.from_previous.contains(file.path)) listing.files.push_back(file);
  std::ranges::sort(listing.files, {}, &FileFact::path);
  return listing;
}

}  // namespace

Result<Snapshot> take_snapshot(int source_fd, const Listing& expected, const os::Path& into,
                               const SnapshotOptions& options) {
  if (os::exists(into)) return make_error(Code::exists, "snapshot '" + into.native() + "' exists already");
  TRY(os::make_directories(into));
  const auto attempt = [&]() -> Result<Snapshot> {
    TRY_ASSIGN(const os::Fd target, os::open_file(into, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    Snapshot snapshot;
    ScanOptions how = checkpoint_options();
    how.tolerate_vanished = options.as_left;
    TRY_ASSIGN(const std::vector<Seen> all, walk(source_fd, how, snapshot.notes));
    if (!options.as_left) TRY(check_unchanged(listing_of(all).files, expected, options.selection));
    const std::vector<Seen> seen = selected(all, options.selection);
    Copier copier(source_fd, target.get(), into, expected, options);
    TRY(copier.copy(seen, snapshot.notes));
    if (!options.as_left) {
      TRY_ASSIGN(const Listing after, list_checkpoint(source_fd));
      TRY(check_unchanged(after.files, expected, options.selection));
      if (after.marker != expected.marker) return directory_changed();
    }
    snapshot.listing = listing_taken(expected, options);
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
