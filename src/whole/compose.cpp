// SPDX-License-Identifier: Apache-2.0
// Combines the state of each unit into a checkpoint: the newest complete state of each, or an older one from the
// previous snapshot. A log that is always written, or a saver that never rests, must not prevent saving the rest.
#include <algorithm>

#include "base/text.hpp"
#include "whole/names.hpp"
#include "whole/watch.hpp"

namespace gridctl::whole {

// Returns true if the unit has not changed for as long as its layout may still add files.
bool WholeWatch::settled(const Sight& sight, const Unit& unit) const {
  if (sight.writer != Writer::running) return true;
  const Duration settle = unit.whole ? unit.settle : std::max(unit.settle, rules_.gang_quiet);
  return std::ranges::all_of(unit.files, [&](const std::string& path) {
    return sight.logs.contains(path) || history_.unchanged_for(path, sight.now) >= settle;
  });
}

bool WholeWatch::is_complete_here(const Sight& sight, const Unit& unit) const {
  return unit.whole || (rules_.of_gang && unit.lacking && sight.writer != Writer::killed);
}

// Returns true if the program ended on its own and tore nothing: it had written everything it wanted, whatever its
// layout expects.
bool WholeWatch::ended_well(const Sight& sight, const Unit& unit) const {
  return sight.writer == Writer::exited && !unit.lacking && std::ranges::none_of(unit.files, [&](const std::string& path) {
    const FileFact* file = store::find_file(sight.listing.files, path);
    return file != nullptr && !sight.logs.contains(path) &&
           sight.access.inspect(*file).state == store::FileState::torn;
  });
}

// A unit that only names another unit is as ready as that one.
bool WholeWatch::is_ready(const Sight& sight, const Unit& unit) const {
  if (ended_well(sight, unit)) return true;
  if (!rules_.of_gang || unit.whole || unit.names.empty()) return is_complete_here(sight, unit) && settled(sight, unit);
  const auto named = std::ranges::find(sight.units, unit.names, &Unit::path);
  return named != sight.units.end() && is_complete_here(sight, *named) && settled(sight, *named);
}

WholeWatch::Facts WholeWatch::facts_of(const Sight& sight, const Unit& unit) const {
  Facts facts;
  for (const std::string& path : unit.files)
    if (const FileFact* file = store::find_file(sight.listing.files, path); file != nullptr && !sight.logs.contains(path))
      facts.emplace(path, *file);
  return facts;
}

// Selects the state of the last snapshot instead of the present files.
void WholeWatch::take_before(const Sight& sight, const Facts& before, const std::vector<std::string>& now,
                             store::Selection& selection) const {
  for (const std::string& path : now)
    if (!sight.logs.contains(path) && !before.contains(path)) selection.left_out.insert(path);
  for (const auto& [path, fact] : before) {
    const FileFact* file = store::find_file(sight.listing.files, path);
    if (file == nullptr || !(*file == fact)) selection.from_previous.insert(path);
  }
}

void WholeWatch::select_rest(const Sight& sight, const Rest& rest, store::Selection& selection) {
  std::vector<std::string> now;
  Facts facts;
  bool steady = true, settings = true;
  for (const FileFact& file : sight.unknown) {
    now.push_back(file.path);
    if (history_.is_being_removed(file.path)) {
      selection.left_out.insert(file.path);
      continue;
    }
    facts.emplace(file.path, file);
    settings = settings && names_settings(file.path);
    steady = steady && (sight.writer != Writer::running ||
                        history_.unchanged_for(file.path, sight.now) >= rules_.known_quiet);
  }
  if (rest.whole) {
    chosen_.rest = std::move(facts);
    return;
  }
  // Beside a layout's unit, files that existed before it, mainly settings, are taken as they are.
  if (taken_rest_.empty() && steady && settings) {
    chosen_.rest = std::move(facts);
    return;
  }
  take_before(sight, taken_rest_, now, selection);
}

// Judges each unit separately: if it is complete, its files go into `chosen_`; otherwise its earlier state is selected.
// The verdict is that of the newest changed unit, if there is one.
std::optional<Verdict> WholeWatch::judge_units(const Sight& sight, const Rest& rest, store::Selection& selection,
                                               std::optional<Verdict>& refused) {
  std::optional<Verdict> news;
  std::int64_t newest = 0;
  bool unnamed = false;  // without the file that names the newest, nothing of it would be found
  for (const Unit& unit : sight.units) {
    if (unit.part) continue;
    Facts facts = facts_of(sight, unit);
    const auto before = taken_units_.find(unit.path);
    if (!is_ready(sight, unit)) {
      unnamed = unnamed || (!unit.names.empty() && before == taken_units_.end());
      if (!refused) refused = refuse(sight, unit.whole ? "'" + sanitize(unit.path) + "' changed just now" : unit.why, unit.blame);
      if (before != taken_units_.end()) chosen_.kept.insert(unit.path);
      take_before(sight, before != taken_units_.end() ? before->second : Facts{}, unit.files, selection);
      continue;
    }
    std::int64_t written = 0;
    for (const auto& [path, fact] : facts) written = std::max(written, fact.mtime_ns);
    if ((before == taken_units_.end() || before->second != facts) && (!news || written >= newest)) {
      newest = written;
      // A file beside it that is being written may belong to a single file.
      const bool unsure = !rules_.of_gang && !rest.whole && facts.size() == 1 && rest_changed_;
      news = Verdict{Whole::layout, "complete", {}, unit.layout + ":" + unit.path, unsure, false, {}};
    }
    chosen_.units[unit.path] = std::move(facts);
  }
  if (unnamed && rules_.of_gang) return std::nullopt;
  return news;
}

void WholeWatch::select_others(const Sight& sight, store::Selection& selection) {
  for (const std::string& log : sight.logs)
    if (!selection.left_out.contains(log)) selection.growing.insert(log);
  if (sight.writer != Writer::exited) selection.left_out.insert(sight.temporary.begin(), sight.temporary.end());
  chosen_.all = selection.left_out.empty() && selection.from_previous.empty();
}

Verdict WholeWatch::compose(const Sight& sight, const Rest& rest) {
  store::Selection selection;
  std::optional<Verdict> refused;
  if (!rest.whole) refused = refuse(sight, rest.why, rest.blame);
  std::optional<Verdict> news = judge_units(sight, rest, selection, refused);
  if (rest.whole && !rest.minor && rest_changed_ && !sight.unknown.empty()) {
    if (!news || rest.by == Whole::exit) news = Verdict{rest.by, rest.why, {}, rest.how, false, false, {}};
    news->provisional = rest.provisional;
  }
  // Lines may have been appended after the last save.
  const bool differs = !last_taken_ || last_taken_->files != sight.listing.files;
  if (!news && !refused && differs && sight.writer != Writer::running)
    news = Verdict{Whole::quiet, "no other file has changed", {}, "growing", false, false, {}};
  if (!news) {
    chosen_ = {};
    return refused ? *std::move(refused) : Verdict{Whole::nothing_new, "unchanged since the last snapshot", {}, {}, false, false, {}};
  }
  if (sight.writer == Writer::exited && !refused)
    news->whole = Whole::exit, news->how = "exit", news->why = "the program ended on its own";
  select_rest(sight, rest, selection);
  select_others(sight, selection);
  news->selection = std::move(selection);
  return *std::move(news);
}

}  // namespace gridctl::whole
