// SPDX-License-Identifier: Apache-2.0
#include "store/gang_tree.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "store/rank_files.hpp"

namespace gridctl::store {

namespace {
constexpr std::size_t k_metadata_max = 64u << 20;  // of a torch metadata that is looked into
constexpr std::string_view k_metadata = ".metadata", k_shard = ".distcp";

// Appended to all along, by every rank under the same name.
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

// "__3_0.distcp" in the pickle of a metadata file, each once.
std::set<std::string> shards_named(ByteView metadata) {
  std::set<std::string> names;
  const std::string_view text = as_text(metadata);
  for (std::size_t end = text.find(k_shard); end != std::string_view::npos; end = text.find(k_shard, end + 1)) {
    std::size_t begin = end;
    while (begin > 0 && (text[begin - 1] == '_' || (text[begin - 1] >= '0' && text[begin - 1] <= '9'))) --begin;
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
  Merge(std::span<const MemberTree> members, const ReadEntry& read) : members_(members), read_(read) {}

  Result<MergedTree> run() {
    for (const MemberTree& member : members_)
      for (const Entry& entry : member.tree->entries) TRY(take(member, entry));
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
  Result<void> take(const MemberTree& member, const Entry& entry) {
    const auto [place, is_new] = kept_.try_emplace(entry.path, Kept{&entry, &member});
    if (is_new || same(*place->second.entry, entry)) return {};
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

  void check_rank_files() {
    std::uint32_t world = 0;
    for (const MemberTree& member : members_) world = std::max(world, member.first_rank + member.ranks);
    for (const auto& [family, ranks] : rank_families(members_))
      for (std::uint32_t rank = 0; rank < world; ++rank)
        if (!ranks.contains(rank))
          merged_.missing.push_back(family.name_of(rank) + ", as the other ranks have written one");
  }

  std::span<const MemberTree> members_;
  const ReadEntry& read_;
  std::map<std::string, Kept> kept_;
  MergedTree merged_;
};

// Every step that one member has parts of, with the newest part of it.
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
}  // namespace

std::optional<std::int64_t> step_named(const Tree& tree) {
  std::optional<std::int64_t> newest;
  for (const Entry& entry : tree.entries)
    if (const auto step = step_in_name(base_name(entry.path)); step && (!newest || *step > *newest)) newest = step;
  return newest;
}

std::optional<std::vector<std::size_t>> newest_common(std::span<const std::vector<MemberTree>> members) {
  for (const auto& parts : members)
    if (parts.empty()) return std::nullopt;
  if (members.empty()) return std::nullopt;
  if (auto found = newest_by(members, true)) return found;
  if (auto found = newest_by(members, false)) return found;
  const auto says_nothing = [](const std::vector<MemberTree>& parts) {
    return !parts.back().step && !step_named(*parts.back().tree);
  };
  // A host whose ranks write nothing, or always the same names, says no step: the others' words count alone.
  std::vector<std::size_t> newest;
  bool some_say = false;
  for (const auto& parts : members) {
    newest.push_back(parts.size() - 1);
    some_say = some_say || !says_nothing(parts);
  }
  return some_say ? std::nullopt : std::optional(newest);
}

bool MergedTree::is_whole() const {
  return missing.empty() && std::all_of(conflicts.begin(), conflicts.end(),
                                        [](const TreeConflict& conflict) { return conflict.harmless; });
}

std::string MergedTree::why() const {
  if (!missing.empty()) return "missing: " + missing.front();
  for (const TreeConflict& conflict : conflicts)
    if (!conflict.harmless)
      return "'" + conflict.path + "' differs between " + conflict.kept_of + " and " + conflict.other;
  return "";
}

Result<MergedTree> merge_members(std::span<const MemberTree> members, const ReadEntry& read) {
  return Merge(members, read).run();
}

Tree local_part(const Tree& tree, RankRange ranks, std::uint32_t world_written, std::uint32_t world_now) {
  if (world_written != world_now) return tree;
  const MemberTree all{"", 0, world_written, &tree, {}};
  std::set<std::string> others;
  for (const auto& [family, present] : rank_families(std::span(&all, 1)))
    for (const std::uint32_t rank : present)
      if (rank < ranks.first || rank >= ranks.first + ranks.count) others.insert(family.name_of(rank));
  Tree part;
  for (const Entry& entry : tree.entries)
    if (!others.contains(entry.path)) part.entries.push_back(entry);
  return part;
}

}  // namespace gridctl::store
