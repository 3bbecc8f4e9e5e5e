// SPDX-License-Identifier: Apache-2.0
// Implements what gangs need from the store and from the links between their hosts.
#include <algorithm>

#include "control/copies/chunks.hpp"
#include "control/copies/freight.hpp"
#include "store/chunk_store.hpp"
#include "store/gang_tree.hpp"
#include "store/stored_tree.hpp"

namespace gridctl::control {

namespace {

// Holds all fetched parts, with their trees.
struct Parts {
  std::vector<std::vector<store::Tree>> trees;
  std::vector<std::vector<store::MemberTree>> members;  // refer to `trees`
};

Result<Parts> load(store::ChunkStore& store, const std::vector<std::vector<CheckpointPart>>& members) {
  Parts parts;
  for (const std::vector<CheckpointPart>& of_member : members) {
    std::vector<store::Tree>& trees = parts.trees.emplace_back();
    for (const CheckpointPart& part : of_member) {
      if (part.nothing) {
        trees.emplace_back();
        continue;
      }
      TRY_ASSIGN(store::Tree tree, store::tree_at(store, part.root));
      trees.push_back(std::move(tree));
    }
  }
  for (std::size_t m = 0; m < members.size(); ++m) {
    std::vector<store::MemberTree>& views = parts.members.emplace_back();
    for (std::size_t i = 0; i < members[m].size(); ++i) {
      const CheckpointPart& part = members[m][i];
      views.push_back({part.member, part.first_rank, part.ranks, &parts.trees[m][i], part.step, part.saved_at});
    }
  }
  return parts;
}

// Returns the tree with which the attempt started. Without it, or if it is no longer kept, the parts are judged without
// a base.
std::optional<store::Tree> base_of(store::ChunkStore& store, const std::vector<std::vector<CheckpointPart>>& members) {
  for (const std::vector<CheckpointPart>& of_member : members)
    for (const CheckpointPart& part : of_member) {
      if (!part.base) continue;
      Result<store::Tree> tree = store::tree_at(store, *part.base);
      return tree ? std::optional(*std::move(tree)) : std::nullopt;
    }
  return std::nullopt;
}

Result<Bytes> read_file(store::ChunkStore& store, const store::Entry& entry) {
  Bytes content;
  for (const store::Chunk& chunk : entry.chunks) {
    TRY_ASSIGN(const Bytes piece, store.get(chunk.digest));
    content.insert(content.end(), piece.begin(), piece.end());
  }
  return content;
}

// Returns why to wait: a member seems to save nothing, while the names of other members' files suggest one file per
// rank.
std::string why_wait(const std::vector<std::vector<CheckpointPart>>& members, const std::vector<store::MemberTree>& views) {
  for (const std::vector<CheckpointPart>& parts : members)
    if (parts.front().nothing && !parts.front().settled)
      for (const store::MemberTree& view : views)
        if (const auto file = store::file_of_a_rank(view))
          return "no file of " + parts.front().member + " yet, although '" + *file +
                 "' looks like one of several files, one for each rank";
  return {};
}

}  // namespace

Result<MergedParts> StoreFreight::merge(const std::vector<std::vector<CheckpointPart>>& members) {
  MergedParts out;
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  TRY_ASSIGN(const Parts parts, load(store, members));
  const bool as_left = std::ranges::any_of(members, [](const std::vector<CheckpointPart>& one) { return one.front().as_left; });
  const auto chosen = as_left ? std::optional(std::vector<std::size_t>(members.size(), 0)) : store::newest_common(parts.members);
  if (!chosen) {
    out.missing = "no step that all members have saved yet";
    return out;
  }
  const std::optional<store::Tree> base = base_of(store, members);
  std::vector<store::MemberTree> views;
  for (std::size_t m = 0; m < members.size(); ++m) {
    views.push_back(parts.members[m].at(chosen->at(m)));
    out.numbers.push_back(members[m].at(chosen->at(m)).number);
  }
  TRY_ASSIGN(const store::MergedTree merged,
             store::merge_members(
                 views, [&](const store::MemberTree&, const store::Entry& entry) { return read_file(store, entry); },
                 base ? &*base : nullptr));
  if (as_left) out.missing.clear();
  else if (merged.is_whole()) out.missing = why_wait(members, views);
  else out.missing = merged.why();
  if (!out.missing.empty()) return out;
  TRY_ASSIGN(out.root, store::put_tree(store, merged.tree));
  TRY(store.seal());
  out.bytes = merged.tree.total_bytes();
  out.files = merged.tree.file_count();
  return out;
}

Result<std::optional<OwnPart>> StoreFreight::part_of(const Digest& root, store::RankRange ranks, std::uint32_t world) {
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  TRY_ASSIGN(const store::Tree tree, store::tree_at(store, root));
  const store::Tree part =
      store::local_part(tree, ranks, world, [&](const store::Entry& entry) { return read_file(store, entry); });
  if (part == tree) return std::optional<OwnPart>{};
  OwnPart own;
  own.manifest = store::to_manifest(part);
  own.root = store::root_of(own.manifest);
  own.bytes = part.total_bytes();
  own.of_bytes = tree.total_bytes();
  return std::optional(std::move(own));
}

Result<PortProof> StoreFreight::prove_port(const HostReach& from, const HostReach& to, std::uint16_t port,
                                           std::uint64_t bytes_max) {
  const auto access = [this](const HostReach& host) {
    return HostAccess{host.provider, &network_, &clock_, &meter_, host.life};
  };
  return control::prove_port(access(from), access(to), port, bytes_max);
}

}  // namespace gridctl::control
