// SPDX-License-Identifier: Apache-2.0
// Judges files that no layout knows: they are complete when everything that a save changes has changed, or, while that
// is not known, when nothing has changed for long enough.
#include <algorithm>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"
#include "whole/names.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole {
namespace {

constexpr int k_gaps_of_quiet = 4;               // quiet must exceed the longest gap seen within a save so many times
constexpr std::uint64_t k_small_text_max = 1024;  // bytes of a file that names another
constexpr std::size_t k_cache_max = 32u << 20;  // bytes; beyond, everything is read anew
constexpr std::size_t k_saves_to_trust = 3;      // then a single file's own pauses are known

std::string ago(Duration duration) { return "changed " + format_duration(duration) + " ago"; }

}  // namespace

WholeWatch::Rest WholeWatch::not_whole(std::string why, std::string blame) {
  return {false, false, false, Whole::not_yet, {}, std::move(why), std::move(blame)};
}

WholeWatch::Rest WholeWatch::judge_rest(const Sight& sight) {
  Rest rest;
  rest.whole = true;
  if (sight.unknown.empty() || !rest_changed_) return rest;
  bool spoiled = false;
  if (auto torn = rest_is_torn(sight, spoiled)) return *std::move(torn);
  if (sight.writer == Writer::running) rest = rest_while_running(sight);
  if (sight.writer == Writer::killed) rest = rest_after_kill(sight);
  rest.provisional = rest.provisional || spoiled;
  if (sight.writer != Writer::exited) return rest;
  rest.by = Whole::exit;
  rest.how = "exit";
  rest.why = "the program ended on its own";
  return rest;
}

std::optional<WholeWatch::Rest> WholeWatch::rest_is_torn(const Sight& sight, bool& spoiled) {
  for (const FileFact& file : sight.unknown) {
    if (is_temporary_name(file.path)) continue;
    const store::Inspection inspection = sight.access.inspect(file);
    if (inspection.state != store::FileState::torn) continue;
    const bool given_up = sight.writer == Writer::running &&
                          history_.unchanged_for(file.path, sight.now) >= rules_.given_up;
    spoiled = spoiled || given_up;
    if (!given_up)
      return not_whole(quoted_path(file.path) + " is incomplete: " + inspection.why, file.path);
  }
  for (const Unit& unit : sight.units)
    if (unit.part && !is_complete_here(sight, unit)) return not_whole(unit.why, unit.blame);
  if (rules_.of_gang) return std::nullopt;
  if (auto shard = missing_shard(sight.unknown)) return not_whole(shard->why, shard->blame);
  return std::nullopt;
}

// Returns true for a small text that names another existing file or folder, as `last_checkpoint` does: it is written at
// once.
bool WholeWatch::points_to_whole(const Sight& sight, const FileFact& file) const {
  if (file.size == 0 || file.size > k_small_text_max ||
      (sight.writer == Writer::running && history_.unchanged_for(file.path, sight.now) < rules_.known_quiet))
    return false;
  const auto bytes = sight.access.read(file, 0, static_cast<std::size_t>(file.size));
  if (!bytes) return false;
  std::string_view text = trim(as_text(*bytes));
  text = text.substr(text.rfind('/') + 1);
  const std::size_t folder = file.path.rfind('/') + 1;  // 0 at the top
  const std::string named = file.path.substr(0, folder) + std::string(text);
  const FileFact* target = text.empty() ? nullptr : store::find_file(sight.listing.files, named);
  return target != nullptr && target->path != file.path &&
         sight.access.inspect(*target).state == store::FileState::whole;
}

// Returns a file that has changed in this save and whose content cannot be judged.
std::optional<std::string> WholeWatch::unsure_file(const Sight& sight, const std::vector<std::string>& changed) {
  for (const std::string& path : changed) {
    const FileFact* file = store::find_file(sight.unknown, path);
    if (file == nullptr || history_.arrives_whole(path) || points_to_whole(sight, *file)) continue;
    if (is_temporary_name(path) || sight.access.inspect(*file).state != store::FileState::whole) return path;
  }
  return std::nullopt;
}

std::string WholeWatch::enough_by_themselves(const Sight& sight, const std::vector<std::string>& changed) const {
  const Folder top(sight.unknown, "", sight.access);
  std::string layout;
  for (const std::string& path : changed) {
    const FileFact* file = store::find_file(sight.unknown, path);
    if (file == nullptr || names_settings(path) || points_to_whole(sight, *file)) continue;
    const std::string_view one = self_contained(top, *file);
    if (one.empty()) return {};
    if (layout.empty() || one == "format") layout = one;
    if (one != "format") layout += layout == one ? ":" + path : "";
  }
  return layout;
}

std::string WholeWatch::part_layout(const Sight& sight, const std::vector<std::string>& changed) const {
  for (const Unit& unit : sight.units)
    if (unit.part && std::ranges::all_of(changed, [&](const std::string& path) {
          return names_settings(path) || std::ranges::find(unit.files, path) != unit.files.end();
        }))
      return unit.layout + ":" + unit.path;
  return {};
}

WholeWatch::Rest WholeWatch::rest_while_running(const Sight& sight) {
  const std::vector<std::string> changed = cohort_.paths();
  const bool units = std::ranges::any_of(sight.units, [](const Unit& unit) { return !unit.part; });
  if (units && std::ranges::all_of(changed, names_settings)) {
    Rest rest;
    rest.whole = sight.now - cohort_.changed_at() >= rules_.known_quiet;
    rest.minor = true;
    return rest;
  }
  if (cohort_.learned()) return rest_learned(sight, changed);
  for (const std::string& path : sight.temporary)
    if (!sight.of_units.contains(path))
      return not_whole(quoted_path(path) + " has a temporary name", path);
  return rest_learning(sight, changed);
}

WholeWatch::Rest WholeWatch::rest_learned(const Sight& sight, const std::vector<std::string>& changed) {
  if (!cohort_.complete()) {
    const std::string slot = cohort_.awaited();
    return not_whole("waiting for " + quoted_path(slot) + " to change, as in the saves before", slot);
  }
  const auto unsure = unsure_file(sight, changed);
  if (!unsure) {
    std::string how = part_layout(sight, changed);
    if (how.empty()) how = enough_by_themselves(sight, changed);
    const bool known = std::ranges::all_of(changed, [&](const std::string& path) {
      const FileFact* file = store::find_file(sight.unknown, path);
      return file == nullptr || sight.access.inspect(*file).state == store::FileState::whole;
    });
    if (how.empty()) how = known ? "format" : "learned";
    return {true,  false,
            false, known ? Whole::format : Whole::learned,
            how,   "all files that every save changes have changed",
            {}};
  }
  const bool single = changed.size() == 1;
  Duration needed = single && cohort_.saves() < k_saves_to_trust ? rules_.learning_quiet : rules_.unknown_quiet;
  needed = std::max(needed, k_gaps_of_quiet * cohort_.longest_pause());
  const Duration quiet = sight.now - cohort_.changed_at();
  if (quiet < needed)
    return not_whole(quoted_path(*unsure) + ", in an unknown format, " + ago(quiet), *unsure);
  if (single) return {true, true, false, Whole::quiet, "quiet", "nothing changed for " + format_duration(needed), {}};
  return {true, false, false, Whole::learned, "learned", "all files that every save changes have changed", {}};
}

WholeWatch::Rest WholeWatch::rest_learning(const Sight& sight, const std::vector<std::string>& changed) {
  const Duration quiet = sight.now - cohort_.changed_at();
  const auto unsure = unsure_file(sight, changed);
  const std::string enough = unsure ? "" : enough_by_themselves(sight, changed);
  const bool like_before = cohort_.saves() == 0 || cohort_.complete();
  if (!enough.empty() && like_before) {
    if (quiet < rules_.known_quiet) return not_whole(ago(quiet), changed.front());
    // A name does not prove that nothing else belongs to the file.
    return {true, enough == "format", false, Whole::format, enough, "a complete state in one file", {}};
  }
  Duration needed = std::max(rules_.learning_quiet, k_gaps_of_quiet * cohort_.longest_gap());
  const bool part = std::ranges::any_of(changed, [](const std::string& path) { return names_a_part(path); });
  if (part && changed.size() == 1 && cohort_.saves() == 0) needed = std::max(needed, rules_.part_quiet);
  const std::string blame = unsure ? *unsure : changed.empty() ? "" : changed.front(), awaited = cohort_.awaited();
  if (!awaited.empty()) needed = std::max(needed, rules_.part_quiet);
  if (quiet < needed && !awaited.empty())
    return not_whole("waiting for " + quoted_path(awaited) + " to change, as in the save before", awaited);
  if (quiet < needed)
    return not_whole(ago(quiet) +
                         "; gridctl is still learning which files belong together, so nothing may change for " +
                         format_duration(needed),
                     blame);
  return {true, true, false, Whole::quiet, "quiet", "nothing changed for " + format_duration(needed), {}};
}

// After a kill, no program writes and none says whether it had finished: only proof counts.
WholeWatch::Rest WholeWatch::rest_after_kill(const Sight& sight) {
  const std::vector<std::string> changed = cohort_.paths();
  if (const auto unsure = unsure_file(sight, changed))
    return not_whole(quoted_path(*unsure) + " may be torn: its writer was killed", *unsure);
  for (const FileFact& file : sight.unknown)
    if (history_.is_being_removed(file.path) && !taken_rest_.contains(file.path))
      return not_whole("its folder was being removed", file.path);
  const std::string enough = enough_by_themselves(sight, changed);
  if (cohort_.complete() || (cohort_.saves() == 0 && !enough.empty())) {
    const bool sure = cohort_.learned() || (!enough.empty() && enough != "format");
    return {true, !sure, false, Whole::format, enough.empty() ? "format" : enough, "all new files are valid", {}};
  }
  return not_whole("it is unknown whether its writer had finished", changed.empty() ? "" : changed.front());
}

Result<Bytes> ReadCache::read(const store::FileFact& file, std::uint64_t offset, std::size_t size,
                              const store::ReadListed& read) {
  Known& known = known_[file.path];
  if (!(known.fact == file)) known = {file, {}};
  const auto at = known.pieces.find({offset, size});
  if (at != known.pieces.end()) return at->second;
  TRY_ASSIGN(Bytes bytes, read(file, offset, size));
  if (bytes_ + bytes.size() > k_cache_max) {
    known_.clear();
    bytes_ = 0;
    return bytes;
  }
  bytes_ += bytes.size();
  known.pieces.emplace(std::pair{offset, size}, bytes);
  return bytes;
}

void ReadCache::keep_only(const std::vector<store::FileFact>& files) {
  std::erase_if(known_, [&](const auto& one) {
    const store::FileFact* file = store::find_file(files, one.first);
    return file == nullptr || !(*file == one.second.fact);
  });
  bytes_ = 0;
  for (const auto& [path, known] : known_)
    for (const auto& [place, piece] : known.pieces) bytes_ += piece.size();
}

}  // namespace gridctl::whole
