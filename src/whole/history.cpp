// SPDX-License-Identifier: Apache-2.0
#include "whole/history.hpp"

#include "whole/names.hpp"

namespace gridctl::whole {
namespace {

constexpr unsigned k_log_growths = 4;       // times that a file must have grown to pass for a log
constexpr std::uint64_t k_log_saves = 2;    // of something else, meanwhile
constexpr unsigned k_replaced_to_know = 2;  // versions that arrived complete, before that is its way

}  // namespace

News History::compare(const Known& before, Known& now, const FileFact& file, BootTime at) const {
  News news{&file, Change::continued, at - before.since};
  if (file.inode != before.fact.inode) {
    news.change = Change::replaced;
    ++now.replaced;
    now.ever_cut = true;
  } else if (file.size < before.fact.size) {
    news.change = Change::rewritten;
    now.ever_cut = true;
  } else if (before.inspection && before.inspection->state == store::FileState::whole) {
    news.change = Change::rewritten;
  }
  if (news.change != Change::replaced) now.continued = true;
  if (file.size > before.fact.size && file.inode == before.fact.inode) ++now.grown;
  return news;
}

std::vector<News> History::look(const std::vector<FileFact>& files, BootTime now) {
  std::vector<News> news;
  note_removed(files);
  for (const FileFact& file : files) {
    const auto at = known_.find(file.path);
    if (at == known_.end()) {
      Known fresh;
      fresh.fact = file;
      fresh.since = now;
      fresh.grows_since_save = saves_;
      known_.emplace(file.path, std::move(fresh));
      news.push_back({&file, Change::fresh, {}});
    } else if (!(at->second.fact == file)) {
      const Known before = at->second;
      news.push_back(compare(before, at->second, file, now));
      at->second.fact = file;
      at->second.since = now;
      at->second.inspection.reset();
    } else {
      continue;
    }
    removing_.erase(std::string(numbered_folder(file.path)));
  }
  return news;
}

void History::note_removed(const std::vector<FileFact>& files) {
  for (auto one = known_.begin(); one != known_.end();) {
    if (store::find_file(files, one->first) != nullptr) {
      ++one;
      continue;
    }
    const std::string folder(numbered_folder(one->first));
    if (!folder.empty() && !is_temporary_name(one->first)) removing_[folder] = true;
    one = known_.erase(one);
  }
}

const store::Inspection& History::inspect(const FileFact& file, const store::Inspect& inspect) {
  Known& known = known_.at(file.path);
  if (!known.inspection) known.inspection = inspect(file);
  return *known.inspection;
}

Duration History::unchanged_for(std::string_view path, BootTime now) const {
  const auto at = known_.find(path);
  return at == known_.end() ? Duration{} : now - at->second.since;
}

bool History::is_log(std::string_view path) const {
  if (is_log_name(path)) return true;
  const auto at = known_.find(path);
  if (at == known_.end()) return false;
  const Known& known = at->second;
  return !known.ever_cut && known.grown >= k_log_growths && saves_ >= known.grows_since_save + k_log_saves;
}

bool History::arrives_whole(std::string_view path) const {
  const auto at = known_.find(path);
  return at != known_.end() && !at->second.continued && at->second.replaced >= k_replaced_to_know;
}

bool History::is_being_removed(std::string_view path) const {
  const std::string_view folder = numbered_folder(path);
  return !folder.empty() && removing_.contains(folder);
}

}  // namespace gridctl::whole
