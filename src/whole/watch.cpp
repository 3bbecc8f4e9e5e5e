// SPDX-License-Identifier: Apache-2.0
// Implements the look itself: it finds the new files, the layouts that know them, and the job's statements about them.
#include "whole/watch.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "whole/names.hpp"

namespace gridctl::whole {
namespace {

constexpr Duration k_copy_patience = std::chrono::minutes{1};  // for a copy that nothing disturbs

bool matches(const std::string& glob, const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return ::fnmatch(glob.c_str(), path.c_str(), FNM_PATHNAME) == 0 || ::fnmatch(glob.c_str(), name.c_str(), 0) == 0;
}

}  // namespace

Access WholeWatch::cached(const Access& access) {
  return {[this, &access](const FileFact& file) { return history_.inspect(file, access.inspect); },
          [this, &access](const FileFact& file, std::uint64_t offset, std::size_t size) {
            return reads_.read(file, offset, size, access.read);
          }};
}

// Sorts the listing into files of layouts, logs, temporary names, and the rest. Changes of the rest go into the cohort.
WholeWatch::Sight WholeWatch::see(const Listing& listing, BootTime now, Writer writer, const Access& access) {
  Sight sight{listing, now, writer, access, {}, {}, {}, {}, {}, false, false};
  const std::vector<News> news = history_.look(listing.files, now);
  reads_.keep_only(listing.files);
  sight.units = find_units(listing.files, access);
  for (const Unit& unit : sight.units) {
    if (unit.part) continue;
    sight.of_units.insert(unit.files.begin(), unit.files.end());
    for (const std::string& path : unit.files) cohort_.forget(path);
  }
  for (const FileFact& file : listing.files) {
    if (history_.is_log(file.path)) {
      sight.logs.insert(file.path);
      cohort_.forget(file.path);
    } else if (is_temporary_name(file.path) && history_.unchanged_for(file.path, now) < rules_.temporary_stale) {
      sight.temporary.insert(file.path);
    } else if (!sight.of_units.contains(file.path)) {
      sight.unknown.push_back(file);
    }
  }
  std::vector<News> of_rest;
  for (const News& one : news) {
    if (!sight.logs.contains(one.file->path)) sight.moved = true;
    if (store::find_file(sight.unknown, one.file->path) != nullptr) of_rest.push_back(one);
  }
  if (!of_rest.empty()) rest_changed_ = true;
  sight.only_logs = sight.units.empty() && sight.unknown.empty() && sight.temporary.empty();
  const bool began = cohort_.changed(of_rest, now);
  if (began) history_.save_ended();
  if (began || is_new_save(sight, news)) ++saves_waited_;
  return sight;
}

// Returns true for a new unit, or for a change of the file that says that everything is there.
bool WholeWatch::is_new_save(const Sight& sight, const std::vector<News>& news) {
  bool fresh = false;
  for (const Unit& unit : sight.units) fresh = seen_units_.insert(unit.path).second || fresh;
  return fresh || (!rules_.whole_when.empty() && std::ranges::any_of(news, [&](const News& one) {
                     return matches(rules_.whole_when, one.file->path);
                   }));
}

void WholeWatch::note_time(const Sight& sight) {
  if (looked_ && sight.moved && waiting_since_) longest_rest_ = std::max(longest_rest_, sight.now - changed_at_);
  if (!looked_ || sight.moved) changed_at_ = sight.now;
  looked_ = true;
  const bool differs = !sight.listing.files.empty() && !(last_taken_ && last_taken_->files == sight.listing.files);
  if (!differs) writing_since_.reset();
  else if (!writing_since_ && (sight.moved || !last_taken_)) writing_since_ = sight.now;
}

Verdict WholeWatch::look(const Listing& listing, BootTime now, Writer writer, const Access& access) {
  const Access through = cached(access);
  const Sight sight = see(listing, now, writer, through);
  note_time(sight);
  chosen_ = {};
  marker_used_ = marker_used_ || listing.marker.has_value();
  if (listing.files.empty()) return {Whole::nothing_new, k_no_files, {}, {}, false, false, {}};
  if (all_taken_ && last_taken_->files == listing.files)
    return {Whole::nothing_new, "unchanged since the last snapshot", {}, {}, false, false, {}};
  if (auto logs = judge_logs(sight)) return *std::move(logs);
  Verdict verdict = judge(sight);
  note_wait(sight, verdict);
  if (verdict.is_whole()) {
    // The directory is complete at every look, but never while it is copied.
    if (overdue_since_ && now - *overdue_since_ >= k_copy_patience) verdict.as_left = verdict.provisional = true;
    return verdict;
  }
  if (auto overdue = take_overdue(sight, verdict)) return *std::move(overdue);
  return verdict;
}

Verdict WholeWatch::judge(const Sight& sight) {
  if (auto told = judge_by_word(sight)) return *std::move(told);
  Verdict verdict = compose(sight, judge_rest(sight));
  if (!sight.listing.unreadable.empty()) verdict.provisional = true;
  return verdict;
}

void WholeWatch::taken(const Listing& listing) {
  last_taken_ = listing;
  all_taken_ = chosen_.all;
  writing_since_.reset();
  stop_waiting();
  taken_any_ = true;
  std::erase_if(taken_units_, [&](const auto& one) { return !chosen_.kept.contains(one.first); });
  for (auto& [path, facts] : chosen_.units) taken_units_[path] = std::move(facts);
  if (chosen_.rest) {
    taken_rest_ = *std::move(chosen_.rest);
    rest_changed_ = false;
  }
  if (!chosen_.units.empty()) history_.save_ended();
  chosen_ = {};
}

void WholeWatch::restored(const Listing& listing, BootTime now, const Access& access) {
  const Access through = cached(access);
  static_cast<void>(history_.look(listing.files, now));
  const std::vector<Unit> units = find_units(listing.files, through);
  std::set<std::string> claimed, slots;
  for (const Unit& unit : units) {
    if (unit.part) continue;
    Facts& facts = taken_units_[unit.path];
    for (const std::string& path : unit.files) {
      claimed.insert(path);
      if (const FileFact* file = store::find_file(listing.files, path)) facts.emplace(path, *file);
    }
  }
  for (const FileFact& file : listing.files) {
    if (claimed.contains(file.path)) continue;
    taken_rest_.emplace(file.path, file);
    if (!is_log_name(file.path) && !names_settings(file.path)) slots.insert(slot_of(file.path));
  }
  cohort_.expect(std::move(slots));
  last_taken_ = listing;
  all_taken_ = true;
  changed_at_ = now;
  looked_ = true;
}

Verdict WholeWatch::refuse(const Sight& sight, std::string why, std::string blame) const {
  const Whole whole = sight.writer == Writer::running ? Whole::not_yet : Whole::never;
  return {whole, std::move(why), std::move(blame), {}, false, false, {}};
}

std::optional<Verdict> WholeWatch::judge_by_word(const Sight& sight) {
  if (!marker_used_ && rules_.whole_when.empty()) return std::nullopt;
  if (marker_used_) {
    if (auto trouble = by_marker(sight)) return trouble;
  } else if (auto trouble = by_file(sight)) {
    // A program that ended well need not have marked its last files as complete.
    if (sight.writer == Writer::exited) return std::nullopt;
    return trouble;
  }
  for (const FileFact& file : sight.listing.files) {
    if (sight.logs.contains(file.path) || is_temporary_name(file.path)) continue;
    const store::Inspection inspection = sight.access.inspect(file);
    if (inspection.state == store::FileState::torn)
      return refuse(sight, quoted_path(file.path) + " is incomplete: " + inspection.why, file.path);
  }
  Verdict verdict{Whole::commit_marker, ".commit", {}, std::string(store::k_how_marker), false, false, {}};
  if (!marker_used_) verdict.why = verdict.how = "whole-when";
  verdict.selection.growing = sight.logs;
  if (!marker_used_) verdict.selection.left_out = sight.temporary;
  Facts rest;
  for (const FileFact& file : sight.unknown) rest.emplace(file.path, file);
  chosen_.rest = std::move(rest);
  chosen_.all = true;
  for (const Unit& unit : sight.units)
    if (!unit.part) chosen_.units[unit.path] = facts_of(sight, unit);
  return verdict;
}

// Returns why the marker does not vouch for this listing; nullopt if it does.
std::optional<Verdict> WholeWatch::by_marker(const Sight& sight) {
  const Listing& listing = sight.listing;
  if (!listing.marker) return refuse(sight, "waiting for .commit", ".commit");
  if (last_taken_ && last_taken_->marker == listing.marker)
    return refuse(sight, "changed since .commit was made; waiting for a new one", ".commit");
  for (const FileFact& file : listing.files)
    if (file.ctime_ns > listing.marker->ctime_ns && !sight.logs.contains(file.path))
      return refuse(sight, quoted_path(file.path) + " changed after .commit", file.path);
  return std::nullopt;
}

// The newest matching file must be new, and nothing may have changed after it.
std::optional<Verdict> WholeWatch::by_file(const Sight& sight) {
  const FileFact* newest = nullptr;
  for (const FileFact& file : sight.listing.files)
    if (!is_temporary_name(file.path) && matches(rules_.whole_when, file.path) &&
        (newest == nullptr || file.mtime_ns > newest->mtime_ns))
      newest = &file;
  const std::string waiting = "waiting for a change of " + quoted_path(rules_.whole_when) + " (whole_when)";
  if (newest == nullptr) return refuse(sight, waiting, rules_.whole_when);
  const FileFact* before = last_taken_ ? store::find_file(last_taken_->files, newest->path) : nullptr;
  if (before != nullptr && *before == *newest) return refuse(sight, waiting, newest->path);
  for (const FileFact& file : sight.listing.files)
    if (file.ctime_ns > newest->ctime_ns && !sight.logs.contains(file.path) && !is_temporary_name(file.path))
      return refuse(sight, quoted_path(file.path) + " changed after " + quoted_path(newest->path), newest->path);
  // A file that is written in place exists before its content does.
  const bool known = sight.access.inspect(*newest).state == store::FileState::whole;
  if (!known && sight.writer == Writer::running &&
      history_.unchanged_for(newest->path, sight.now) < rules_.known_quiet)
    return refuse(sight, quoted_path(newest->path) + " has just changed", newest->path);
  return std::nullopt;
}

}  // namespace gridctl::whole
