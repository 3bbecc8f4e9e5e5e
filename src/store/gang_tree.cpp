// SPDX-License-Identifier: Apache-2.0
#include "store/gang_tree.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/text.hpp"
#include "store/rank_files.hpp"

namespace gridctl::store {

namespace {
constexpr Duration k_apart_max = std::chrono::minutes{1};  // between the ends of one save on two hosts, seen from here

// Matches logs that every rank appends to under the same name.
bool is_log(std::string_view path) {
  const std::string_view name = base_name(path);
  for (const char* ending : {".log", ".jsonl", ".csv", ".out", ".err"})
    if (name.ends_with(ending)) return true;
  return name.find("tfevents") != std::string_view::npos;
}

bool same(const Entry& a, const Entry& b) {
  return a.kind == b.kind && a.size == b.size && a.chunks == b.chunks && a.target == b.target;
}

std::string in_folder(std::string_view folder, std::string_view name) {
  return folder.empty() ? std::string(name) : std::string(folder) + "/" + std::string(name);
}

// Returns names such as "__3_0.distcp" in the pickle of a metadata file, each once.
std::set<std::string> shards_named(ByteView metadata) {
  std::set<std::string> names;
  const std::string_view text = as_text(metadata);
  for (std::size_t end = text.find(k_shard); end != std::string_view::npos; end = text.find(k_shard, end + 1)) {
    std::size_t begin = end;
    while (begin > 0 && (text[begin - 1] == '_' || is_digit(text[begin - 1]))) --begin;
    if (begin < end && text.substr(begin, 2) == "__")
      names.insert(std::string(text.substr(begin, end + k_shard.size() - begin)));
  }
  return names;
}

struct Kept {
  const Entry* entry = nullptr;
  const MemberTree* of = nullptr;
};

class Merge {
 public:
  Merge(std::span<const MemberTree> members, const ReadEntry& read, const Tree* base) : members_(members), read_(read) {
    if (base == nullptr) return;
    for (const Entry& entry : base->entries) base_.emplace(entry.path, &entry);
    const MemberTree all{"", 0, std::numeric_limits<std::uint32_t>::max(), base};
    base_families_ = rank_families(std::span(&all, 1));
  }

  Result<MergedTree> run() {
    for (const bool given : {false, true})
      for (const MemberTree& member : members_)
        for (const Entry& entry : member.tree->entries)
          if (is_as_given(entry) == given) {
            if (!given) anew_[entry.path].push_back(&member);
            TRY(take(member, entry, given));
          }
    check_rewritten_files();
    TRY(check_distributed());
    check_rank_files();
    std::vector<Entry> entries;
    for (const auto& [path, kept] : kept_) {
      entries.push_back(*kept.entry);
      merged_.owners.push_back(kept.of->member);
    }
    TRY_ASSIGN(merged_.tree, make_tree(std::move(entries)));
    return std::move(merged_);
  }

 private:
  [[nodiscard]] bool is_as_given(const Entry& entry) const {
    const auto found = base_.find(entry.path);
    return found != base_.end() && same(*found->second, entry);
  }

  Result<void> take(const MemberTree& member, const Entry& entry, bool given) {
    const auto [place, is_new] = kept_.try_emplace(entry.path, Kept{&entry, &member});
    if (is_new || given || same(*place->second.entry, entry)) return {};
    const Entry& first = *place->second.entry;
    if (first.kind != entry.kind)
      return make_error(Code::checkpoint_damaged, "'" + entry.path + "' is a file on one host and a folder or link on "
                                                  "another: " + place->second.of->member + " and " + member.member);
    merged_.conflicts.push_back({entry.path, place->second.of->member, member.member, is_log(entry.path)});
    return {};
  }

  Result<void> check_distributed() {
    std::map<std::string, std::set<std::string>> shards;  // by folder
    for (const auto& [path, kept] : kept_)
      if (base_name(path).ends_with(k_shard)) shards[std::string(folder_of(path))].insert(std::string(base_name(path)));
    std::set<std::string> described;
    for (const auto& [path, kept] : kept_) {
      if (!base_name(path).ends_with(k_metadata) || kept.entry->kind != EntryKind::file) continue;
      const std::string folder(folder_of(path));
      described.insert(folder);
      if (kept.entry->size > k_metadata_max) continue;
      TRY_ASSIGN(const Bytes content, read_(*kept.of, *kept.entry));
      for (const std::string& name : shards_named(content))
        if (!kept_.contains(in_folder(folder, name)))
          merged_.missing.push_back(in_folder(folder, name) + ", which " + path + " names");
    }
    for (const auto& [folder, names] : shards)
      if (!described.contains(folder))
        merged_.missing.push_back(in_folder(folder, k_metadata) + ", without which " + *names.begin() +
                                  " cannot be read");
    return {};
  }

  // Checks rank files at the same paths as in the previous checkpoint: all of them are from one save, or none is.
  void check_rewritten_files() {
    const std::uint32_t world = world_now();
    for (const auto& [family, given] : base_families_) {
      const std::optional<std::set<std::uint32_t>> anew = written_anew(family, given, world);
      if (!anew || anew->empty()) continue;
      for (std::uint32_t rank = 0; rank < world; ++rank)
        if (!anew->contains(rank))
          merged_.missing.push_back(family.name_of(rank) + " again, because other ranks have written theirs");
      for (const std::uint32_t rank : given)
        if (rank >= world) kept_.erase(family.name_of(rank));
    }
  }

  // Returns the ranks whose files are new; nullopt if one rank has written another's file: then the number has another
  // meaning.
  [[nodiscard]] std::optional<std::set<std::uint32_t>> written_anew(const RankFamily& family,
                                                                    const std::set<std::uint32_t>& given,
                                                                    std::uint32_t world) const {
    std::set<std::uint32_t> ranks = given, anew;
    for (std::uint32_t rank = 0; rank < world; ++rank) ranks.insert(rank);
    for (const std::uint32_t rank : ranks) {
      const auto found = anew_.find(family.name_of(rank));
      if (found == anew_.end()) continue;
      for (const MemberTree* member : found->second)
        if (rank < member->first_rank || rank >= member->first_rank + member->ranks) return std::nullopt;
      anew.insert(rank);
    }
    return anew;
  }

  [[nodiscard]] std::uint32_t world_now() const {
    std::uint32_t world = 0;
    for (const MemberTree& member : members_) world = std::max(world, member.first_rank + member.ranks);
    return world;
  }

  void check_rank_files() {
    const std::uint32_t world = world_now();
    for (const auto& [family, ranks] : rank_families(members_))
      for (std::uint32_t rank = 0; rank < world; ++rank)
        if (!ranks.contains(rank))
          merged_.missing.push_back(family.name_of(rank) + ", because the other ranks have written one");
  }

  std::span<const MemberTree> members_;
  const ReadEntry& read_;
  std::map<std::string_view, const Entry*> base_;
  std::map<RankFamily, std::set<std::uint32_t>> base_families_;
  std::map<std::string, std::vector<const MemberTree*>> anew_;  // who holds what was not given, by path
  std::map<std::string, Kept> kept_;
  MergedTree merged_;
};

// Maps every step that one member has parts of to the newest part of it.
using Steps = std::map<std::int64_t, std::size_t>;
Steps steps_of(const std::vector<MemberTree>& parts, bool told) {
  Steps steps;
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (const auto step = told ? parts[i].step : step_named(*parts[i].tree)) steps[*step] = i;
  return steps;
}

std::optional<std::vector<std::size_t>> newest_by(std::span<const std::vector<MemberTree>> members, bool told) {
  std::vector<Steps> all;
  for (const auto& parts : members) all.push_back(steps_of(parts, told));
  for (auto step = all.front().rbegin(); step != all.front().rend(); ++step) {
    std::vector<std::size_t> positions;
    for (const Steps& steps : all)
      if (const auto found = steps.find(step->first); found != steps.end()) positions.push_back(found->second);
    if (positions.size() == all.size()) return positions;
  }
  return std::nullopt;
}

bool has_files(const Tree& tree) {
  return std::ranges::any_of(tree.entries, [](const Entry& entry) { return entry.kind != EntryKind::directory; });
}

// Returns true for a member that saved once, and not again while another saved twice: settings, which stay as they are.
bool stays(const std::vector<MemberTree>& parts, std::span<const std::vector<MemberTree>> members) {
  if (parts.size() > 1 || !parts.back().saved_at) return false;
  return std::ranges::any_of(members, [&](const std::vector<MemberTree>& others) {
    return std::ranges::count_if(others, [&](const MemberTree& other) {
             return other.saved_at && *other.saved_at > *parts.back().saved_at + k_apart_max;
           }) >= 2;
  });
}

std::size_t nearest_to(BootTime when, const std::vector<MemberTree>& parts) {
  const auto apart = [when](const MemberTree& part) { return part.saved_at.value_or(when) - when; };
  std::size_t best = 0;
  for (std::size_t i = 1; i < parts.size(); ++i)
    if (std::chrono::abs(apart(parts[i])) <= std::chrono::abs(apart(parts[best]))) best = i;
  return best;
}

// Returns the shortest time between two saves of one member; at most k_apart_max.
Duration shortest_gap(std::span<const std::vector<MemberTree>> members) {
  Duration shortest = k_apart_max;
  for (const auto& parts : members)
    for (std::size_t i = 1; i < parts.size(); ++i)
      if (parts[i].saved_at && parts[i - 1].saved_at)
        shortest = std::min(shortest, *parts[i].saved_at - *parts[i - 1].saved_at);
  return shortest;
}

// Chooses parts saved at one time, nearer to each other than to earlier and later saves.
std::optional<std::vector<std::size_t>> newest_by_time(std::span<const std::vector<MemberTree>> members) {
  std::optional<BootTime> when;  // the newest that all can have
  for (const auto& parts : members)
    if (parts.back().saved_at && !stays(parts, members))
      when = std::min(when.value_or(*parts.back().saved_at), *parts.back().saved_at);
  std::vector<std::size_t> positions;
  for (const auto& parts : members) {
    positions.push_back(when && !stays(parts, members) ? nearest_to(*when, parts) : parts.size() - 1);
    const std::optional<BootTime> saved = parts[positions.back()].saved_at;
    if (when && saved && !stays(parts, members) && std::chrono::abs(*saved - *when) * 2 > shortest_gap(members))
      return std::nullopt;
  }
  return positions;
}

// Chooses among parts if not all of them name a step.
std::optional<std::vector<std::size_t>> newest_unnamed(std::span<const std::vector<MemberTree>> members) {
  if (members.size() == 1) return std::vector<std::size_t>{members.front().size() - 1};
  const bool some_say = std::ranges::any_of(members, [](const std::vector<MemberTree>& parts) {
    return parts.back().step || step_named(*parts.back().tree);
  });
  return some_say ? std::nullopt : newest_by_time(members);
}
}  // namespace

std::optional<std::int64_t> step_named(const Tree& tree) {
  std::optional<std::int64_t> newest;
  for (const Entry& entry : tree.entries)
    if (const auto step = step_in_name(base_name(entry.path)); step && (!newest || *step > *newest)) newest = step;
  return newest;
}

std::optional<std::vector<std::size_t>> newest_common(std::span<const std::vector<MemberTree>> members) {
  std::vector<std::size_t> positions(members.size());
  std::vector<std::size_t> saving;  // members that have saved files
  std::vector<std::vector<MemberTree>> parts;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].empty()) return std::nullopt;
    positions[i] = members[i].size() - 1;
    if (!has_files(*members[i].back().tree)) continue;
    saving.push_back(i);
    parts.push_back(members[i]);
  }
  if (parts.empty()) return std::nullopt;
  auto found = newest_by(parts, true);
  if (!found) found = newest_by(parts, false);
  if (!found) found = newest_unnamed(parts);
  if (!found) return std::nullopt;
  for (std::size_t i = 0; i < saving.size(); ++i) positions[saving[i]] = found->at(i);
  return positions;
}

bool MergedTree::is_whole() const {
  return missing.empty() &&
         std::ranges::all_of(conflicts, [](const TreeConflict& conflict) { return conflict.harmless; });
}

std::string MergedTree::why() const {
  if (!missing.empty()) return "missing: " + missing.front();
  for (const TreeConflict& conflict : conflicts)
    if (!conflict.harmless)
      return "'" + conflict.path + "' differs between " + conflict.kept_of + " and " + conflict.other;
  return "";
}

Result<MergedTree> merge_members(std::span<const MemberTree> members, const ReadEntry& read, const Tree* base) {
  return Merge(members, read, base).run();
}

}  // namespace gridctl::store
