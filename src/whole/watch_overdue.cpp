// SPDX-License-Identifier: Apache-2.0
// Ends the wait for certainty: after three saves or two intervals without a snapshot, takes the best moment of rest, as
// a provisional checkpoint. Logs alone are taken as they grow.
#include <algorithm>

#include "whole/watch.hpp"

namespace gridctl::whole {
namespace {

constexpr std::size_t k_saves_to_wait = 3;
constexpr int k_intervals_to_wait = 2;
constexpr Duration k_wait_min = std::chrono::seconds{10};       // what belongs together may still be learned
constexpr Duration k_wait_max_first = std::chrono::minutes{2};  // while nothing at all has been taken
constexpr Duration k_wait_max = std::chrono::minutes{10};
constexpr Duration k_rest_wait = std::chrono::seconds{10};      // for a moment of rest; then no rest is needed
constexpr Duration k_logs_every_max = std::chrono::minutes{1};

// A moment counts as rest after three fifths of the longest pause between two changes: pauses within a save are shorter
// than those between saves.
constexpr int k_rest_share = 3, k_rest_of = 5;

bool is_torn(const Access& access, const FileFact& file) {
  return access.inspect(file).state == store::FileState::torn;
}

}  // namespace

// Appended lines are complete whenever they are read.
std::optional<Verdict> WholeWatch::judge_logs(const Sight& sight) {
  if (!sight.only_logs) return std::nullopt;
  const bool running = sight.writer == Writer::running;
  if (running && !waiting_since_) waiting_since_ = sight.now;
  const Duration every = std::clamp(interval_, k_wait_min, k_logs_every_max);
  if (running && (rules_.of_gang || sight.now - *waiting_since_ < every))
    return Verdict{Whole::nothing_new, "only logs changed", {}, {}, false, false, {}};
  chosen_.rest = Facts{};
  chosen_.all = true;
  Verdict verdict{Whole::quiet, "only logs changed", {}, "growing", false, false, {}};
  verdict.selection.growing = sight.logs;
  return verdict;
}

// Returns true if another unit of the layout is newer, or nothing has changed for long: the missing files will not
// arrive.
bool WholeWatch::is_given_up(const Sight& sight, const Unit& unit) const {
  const auto newest = [&](const Unit& one) {
    std::int64_t at = 0;
    for (const std::string& path : one.files)
      if (const FileFact* file = store::find_file(sight.listing.files, path)) at = std::max(at, file->mtime_ns);
    return at;
  };
  if (std::ranges::all_of(unit.files, [&](const std::string& path) {
        return history_.unchanged_for(path, sight.now) >= rules_.given_up;
      }))
    return true;
  return std::ranges::any_of(sight.units, [&](const Unit& other) {
    return other.layout == unit.layout && other.path != unit.path && other.names.empty() && newest(other) > newest(unit);
  });
}

void WholeWatch::note_wait(const Sight& sight, const Verdict& verdict) {
  if (sight.writer != Writer::running) return;
  if (verdict.whole == Whole::nothing_new) {
    stop_waiting();
    return;
  }
  if (!waiting_since_) waiting_since_ = sight.now;
  const Duration waited = sight.now - *waiting_since_;
  const Duration most = taken_any_ ? k_wait_max : k_wait_max_first;
  const Duration patience =
      interval_ > Duration{} ? std::clamp(k_intervals_to_wait * interval_, k_wait_min, most) : most;
  const bool due = waited >= k_wait_min && (saves_waited_ >= k_saves_to_wait || waited >= patience);
  if (due && !overdue_since_) overdue_since_ = sight.now;
}

void WholeWatch::stop_waiting() {
  waiting_since_.reset();
  overdue_since_.reset();
  saves_waited_ = 0;
  longest_rest_ = {};
}

// Takes everything except what is being written, as far as its format shows.
std::optional<Verdict> WholeWatch::take_overdue(const Sight& sight, const Verdict& refused) {
  if (!overdue_since_) return std::nullopt;
  const bool restless = sight.now - *overdue_since_ >= k_rest_wait;
  if (!restless && k_rest_of * (sight.now - changed_at_) < k_rest_share * longest_rest_) return std::nullopt;
  chosen_ = {};
  Verdict verdict{Whole::overdue, refused.why, refused.blame, "overdue", true, restless, {}};
  bool news = false;
  for (const Unit& unit : sight.units) {
    if (unit.part) continue;
    Facts facts = facts_of(sight, unit);
    const auto before = taken_units_.find(unit.path);
    const bool known = before != taken_units_.end();
    if (!is_ready(sight, unit) && !is_given_up(sight, unit)) {
      if (known) chosen_.kept.insert(unit.path);
      take_before(sight, known ? before->second : Facts{}, unit.files, verdict.selection);
      continue;
    }
    news = news || !known || before->second != facts;
    chosen_.units[unit.path] = std::move(facts);
  }
  Facts rest;
  std::vector<std::string> torn;
  for (const FileFact& file : sight.unknown) {
    if (is_torn(sight.access, file) && history_.unchanged_for(file.path, sight.now) < rules_.given_up) {
      torn.push_back(file.path);
      continue;
    }
    const auto before = taken_rest_.find(file.path);
    news = news || before == taken_rest_.end() || !(before->second == file);
    rest.emplace(file.path, file);
  }
  if (!news) {
    chosen_ = {};
    return std::nullopt;
  }
  Facts torn_before;
  for (const std::string& path : torn)
    if (const auto before = taken_rest_.find(path); before != taken_rest_.end()) torn_before.insert(*before);
  take_before(sight, torn_before, torn, verdict.selection);
  rest.merge(torn_before);
  chosen_.rest = std::move(rest);
  select_others(sight, verdict.selection);
  return verdict;
}

}  // namespace gridctl::whole
