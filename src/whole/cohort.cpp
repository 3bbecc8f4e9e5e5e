// SPDX-License-Identifier: Apache-2.0
#include "whole/cohort.hpp"

#include <algorithm>

#include "whole/names.hpp"

namespace gridctl::whole {
namespace {

bool within(const std::set<std::string>& wanted, const auto& current) {
  return !wanted.empty() &&
         std::ranges::all_of(wanted, [&](const std::string& slot) { return current.contains(slot); });
}

}  // namespace

// Returns true if a slot is written again: under another number, by another file, from its beginning, or after a change
// elsewhere.
bool Cohort::begins_anew(const News& news) const {
  const auto at = current_.find(slot_of(news.file->path));
  if (at == current_.end()) return false;
  if (at->second.path != news.file->path || news.change == Change::replaced || news.change == Change::rewritten)
    return true;
  return std::ranges::any_of(current_, [&](const auto& one) { return one.second.at > at->second.at; });
}

bool Cohort::changed(const std::vector<News>& news, BootTime now) {
  if (news.empty()) return false;
  const bool anew = std::ranges::any_of(news, [this](const News& one) { return begins_anew(one); });
  if (anew) {
    before_last_ = std::move(last_);
    last_.clear();
    for (const auto& [slot, member] : current_) last_.insert(slot);
    current_.clear();
    ++saves_;
    // The restored content has been compared with the first save by now.
    expected_.clear();
  } else if (!current_.empty()) {
    longest_gap_ = std::max(longest_gap_, now - changed_at_);
    for (const News& one : news)
      if (one.change == Change::continued) longest_pause_ = std::max(longest_pause_, one.gap);
  }
  for (const News& one : news) current_[slot_of(one.file->path)] = {one.file->path, now};
  changed_at_ = now;
  return anew;
}

void Cohort::forget(const std::string& path) {
  const std::string slot = slot_of(path);
  const auto at = current_.find(slot);
  if (at != current_.end() && at->second.path == path) current_.erase(at);
  last_.erase(slot);
  before_last_.erase(slot);
}

bool Cohort::learned() const { return (saves_ >= 2 && last_ == before_last_ && !last_.empty()) || within(expected_, current_); }

bool Cohort::complete() const { return saves_ == 0 ? within(expected_, current_) : within(last_, current_); }

std::string Cohort::awaited() const {
  for (const std::string& slot : saves_ == 0 ? expected_ : last_)
    if (!current_.contains(slot)) return slot;
  return {};
}

std::vector<std::string> Cohort::paths() const {
  std::vector<std::string> paths;
  for (const auto& [slot, member] : current_) paths.push_back(member.path);
  return paths;
}

}  // namespace gridctl::whole
