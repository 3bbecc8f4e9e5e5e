// SPDX-License-Identifier: Apache-2.0
#include "store/whole.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace gridctl::store {
namespace {

std::string shown(std::string_view path) { return "'" + sanitize(path.substr(0, 200)) + "'"; }
std::string_view name_of(std::string_view path) { return path.substr(path.rfind('/') + 1); }
std::string_view folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

const FileFact* find(const std::vector<FileFact>& files, std::string_view path) {
  const auto at = std::lower_bound(files.begin(), files.end(), path,
                                   [](const FileFact& file, std::string_view wanted) { return file.path < wanted; });
  return at != files.end() && at->path == path ? &*at : nullptr;
}

constexpr std::size_t k_shard_digits = 5;  // "model-00001-of-00004.safetensors"
struct Shard {
  std::string set;  // what all shards of one set share
  unsigned number = 0, count = 0;
};
std::optional<unsigned> five_digits(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != k_shard_digits || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
std::optional<Shard> shard_of(std::string_view path) {
  const std::size_t of = path.rfind("-of-");
  if (of == std::string_view::npos || of < k_shard_digits + 1 || path[of - k_shard_digits - 1] != '-')
    return std::nullopt;
  const auto number = five_digits(path.substr(of - k_shard_digits, k_shard_digits));
  const auto count = five_digits(path.substr(of + 4, k_shard_digits));
  if (!number || !count || *count == 0 || *number > *count) return std::nullopt;
  std::string set(path.substr(0, of - k_shard_digits));
  set.append(path.substr(of));
  return Shard{std::move(set), *number, *count};
}

// A set of shards counts from 0 or from 1, so `count` different numbers make it complete.
std::optional<std::string> missing_shard(const Listing& listing) {
  std::map<std::string, std::pair<unsigned, std::set<unsigned>>> sets;
  for (const FileFact& file : listing.files) {
    if (is_temporary_name(file.path)) continue;
    if (const auto shard = shard_of(file.path)) {
      auto& [count, numbers] = sets[shard->set];
      count = shard->count;
      numbers.insert(shard->number);
    }
  }
  for (const auto& [set, found] : sets) {
    if (found.second.size() < found.first) {
      return "only " + std::to_string(found.second.size()) + " of " + std::to_string(found.first) + " shards of " +
             shown(set) + " are there";
    }
  }
  return std::nullopt;
}

// A folder that lost files but not all of them was being removed when its writer ended.
std::optional<std::string> half_removed(const Listing& before, const Listing& now) {
  std::set<std::string_view> folders;
  for (const FileFact& file : now.files) folders.insert(folder_of(file.path));
  for (const FileFact& file : before.files) {
    const std::string_view folder = folder_of(file.path);
    if (!folder.empty() && folders.contains(folder) && find(now.files, file.path) == nullptr)
      return "folder " + shown(folder) + " was being removed";
  }
  return std::nullopt;
}

// Why the marker does not vouch for this listing; nullopt when it does.
std::optional<std::string> marker_trouble(const Listing& listing, const std::optional<Listing>& last_taken) {
  if (!listing.marker) return "waiting for .commit";
  if (last_taken && last_taken->marker == listing.marker)
    return "changed since .commit was made; waiting for a new one";
  for (const FileFact& file : listing.files) {
    if (file.ctime_ns > listing.marker->ctime_ns) return shown(file.path) + " changed after .commit";
  }
  return std::nullopt;
}

}  // namespace

std::string_view how_name(Whole whole) {
  switch (whole) {
    case Whole::commit_marker: return "commit-marker";
    case Whole::format: return "format";
    case Whole::quiet: return "quiet";
    case Whole::exit: return "exit";
    case Whole::not_yet:
    case Whole::never:
    case Whole::nothing_new: break;
  }
  return "";
}

bool is_temporary_name(std::string_view path) {
  static constexpr std::array<std::string_view, 11> k_ends{
      ".tmp", ".temp", ".part", ".partial", ".incomplete", ".swp", ".swx", ".writing", ".download", ".lock", "~"};
  // Any component: savers also write whole folders under a temporary name ("step-10.orbax-checkpoint-tmp-17", "tmp-…").
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view name = path.substr(begin, end - begin);
    begin = end + 1;
    if (std::any_of(k_ends.begin(), k_ends.end(), [&](std::string_view tail) { return name.ends_with(tail); }))
      return true;
    if (name.starts_with(".#") || name.starts_with("tmp-") || name.starts_with("tmp_") || name.starts_with(".tmp"))
      return true;
    if (name.find(".tmp.") != std::string_view::npos || name.find("-tmp-") != std::string_view::npos) return true;
    if (name == "tmp") return true;
  }
  return false;
}

Inspection inspect_file(std::string_view path, std::uint64_t size, const ReadAt& read) {
  const Result<Bytes> first = read(0, 4);
  if (!first) return {FileState::torn, first.error().one_line()};
  const Format format = guess_format(name_of(path), size, *first);
  switch (format) {
    case Format::safetensors:
    case Format::zip: {
      const auto tensors = tensors_of(format, size, read);
      return tensors ? Inspection{FileState::whole, ""} : Inspection{FileState::torn, tensors.error().message};
    }
    case Format::json:  // invalid: perhaps torn, perhaps lines of JSON under that name; only quiet time can tell
      if (check_json(size, read)) return {FileState::whole, ""};
      break;
    case Format::truncated: return {FileState::torn, "only " + std::to_string(size) + " bytes so far"};
    case Format::unknown: break;
  }
  return {};
}

const Inspection& WholeWatch::inspected(const FileFact& file, const Inspect& inspect) {
  const auto known = std::lower_bound(known_.begin(), known_.end(), file.path,
                                      [](const Known& one, std::string_view path) { return one.fact.path < path; });
  if (!known->inspection) known->inspection = inspect(file);
  return *known->inspection;
}

Duration WholeWatch::unchanged_for(const FileFact& file, BootTime now) const {
  const auto known = std::lower_bound(known_.begin(), known_.end(), file.path,
                                      [](const Known& one, std::string_view path) { return one.fact.path < path; });
  return now - known->since;
}

void WholeWatch::taken(const Listing& listing) {
  last_taken_ = listing;
  writing_since_.reset();
}

Verdict WholeWatch::look(const Listing& listing, BootTime now, Writer writer, const Inspect& inspect) {
  std::vector<Known> next;
  next.reserve(listing.files.size());
  std::size_t same = 0;
  auto old = known_.begin();
  for (const FileFact& file : listing.files) {
    while (old != known_.end() && old->fact.path < file.path) ++old;
    if (old != known_.end() && old->fact == file) {
      next.push_back(*old);
      ++same;
    } else {
      next.push_back({file, now, std::nullopt});
    }
  }
  if (!looked_ || same != next.size() || same != known_.size()) changed_at_ = now;
  looked_ = true;
  const bool differs = !listing.files.empty() && !(last_taken_ && last_taken_->files == listing.files);
  if (!differs) writing_since_.reset();
  else if (!writing_since_) writing_since_ = now;
  known_ = std::move(next);
  marker_used_ = marker_used_ || listing.marker.has_value();
  return judge(listing, now, writer, inspect);
}

Verdict WholeWatch::judge(const Listing& listing, BootTime now, Writer writer, const Inspect& inspect) {
  if (listing.files.empty()) return {Whole::nothing_new, "no files yet"};
  if (last_taken_ && last_taken_->files == listing.files)
    return {Whole::nothing_new, "unchanged since the last snapshot"};
  const Whole refused = writer == Writer::running ? Whole::not_yet : Whole::never;

  if (marker_used_) {
    if (auto trouble = marker_trouble(listing, last_taken_)) return {refused, *std::move(trouble)};
  }
  bool all_known = true;
  const FileFact* changed_unknown = nullptr;
  for (const FileFact& file : listing.files) {
    if (is_temporary_name(file.path)) {
      if (!marker_used_ && writer == Writer::running && unchanged_for(file, now) < rules_.temporary_stale)
        return {Whole::not_yet, shown(file.path) + " has a temporary name"};
      all_known = false;
    } else {
      const Inspection& inspection = inspected(file, inspect);
      if (inspection.state == FileState::torn) return {refused, shown(file.path) + " is not whole: " + inspection.why};
      if (inspection.state == FileState::whole) continue;
      all_known = false;
    }
    const FileFact* before = last_taken_ ? find(last_taken_->files, file.path) : nullptr;
    if (before == nullptr || !(*before == file)) changed_unknown = &file;
  }
  if (marker_used_) return {Whole::commit_marker, ".commit"};
  if (auto shard = missing_shard(listing)) return {refused, *std::move(shard)};

  if (writer == Writer::exited) return {Whole::exit, "the program ended by itself"};
  if (writer == Writer::killed) {
    if (changed_unknown != nullptr)
      return {Whole::never, shown(changed_unknown->path) + " may be torn: its writer was killed"};
    if (last_taken_) {
      if (auto removed = half_removed(*last_taken_, listing)) return {Whole::never, *std::move(removed)};
    }
    return {Whole::format, "all new files are valid"};
  }
  const Duration quiet = now - changed_at_, needed = all_known ? rules_.known_quiet : rules_.quiet;
  if (quiet < needed) return {Whole::not_yet, "changed " + format_duration(quiet) + " ago"};
  if (all_known) return {Whole::format, "all files are valid"};
  return {Whole::quiet, "nothing changed for " + format_duration(needed)};
}

}  // namespace gridctl::store
