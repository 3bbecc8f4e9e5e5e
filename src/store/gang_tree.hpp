// SPDX-License-Identifier: Apache-2.0
// Merges the parts of several hosts into one checkpoint: each has the files of its own ranks. Pure; the only look into
// files goes through a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// Holds the part of a checkpoint on one host.
struct MemberTree {
  std::string member;  // for people
  std::uint32_t first_rank = 0, ranks = 1;
  const Tree* tree = nullptr;        // borrowed
  std::optional<std::int64_t> step{};  // that the job told with it ($GRIDCTL_METRICS)
  std::optional<BootTime> saved_at{};  // by one clock for all members
};

// Returns the step of a tree by the names in it: the greatest number of folders and files such as step-300,
// global_step5, checkpoint-500, iter_0000100, epoch=3-step=300.ckpt. nullopt: no such names.
[[nodiscard]] std::optional<std::int64_t> step_named(const Tree& tree);

// Chooses the newest set with one step from the parts of each member, oldest first: positions, one for each member. The
// job's own report decides, otherwise names, otherwise the times of saving; without those, the newest of each. A member
// whose newest part has no files goes with any set. nullopt: no step is complete, or nothing shows which parts belong
// together.
[[nodiscard]] std::optional<std::vector<std::size_t>> newest_common(std::span<const std::vector<MemberTree>> members);

// Names a path with different content on two members. Each member was given all of the restored directory: files that
// it holds unchanged yield to another member's version, and are not a conflict. The version of rank 0's host is kept;
// logs and similar files always differ.
struct TreeConflict {
  std::string path, kept_of, other;
  bool harmless = false;
};

struct MergedTree {
  Tree tree;
  std::vector<std::string> missing;     // "step-5/__3_0.distcp, which step-5/.metadata names"
  std::vector<TreeConflict> conflicts;  // by path
  std::vector<std::string> owners;      // of each entry of the tree: the member it was taken from
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] std::string why() const;  // why not, the first reason of each kind
};

using ReadEntry = std::function<Result<Bytes>(const MemberTree&, const Entry&)>;

// Merges everything that any member holds; content that several share is kept once. The result is complete if
//   each .metadata of torch's distributed checkpoints finds every file that it names, and no such file exists without
//   one;
//   for files that each rank writes (zero_pp_rank_3_…, rank_3.pt, random_states_3.pkl), no rank's file is missing.
// An error names a path that is a file on one host and a folder on another. REQUIRES: members in the order of their
// ranks.
//
// `base`: the checkpoint that all of them got completely at the start; nullptr: none, or not known. A file that a
// member
// holds unchanged yields to another member's version. If one rank has rewritten its file, all must have; files of ranks
// that no longer exist, because the gang has become smaller, are left out.
[[nodiscard]] Result<MergedTree> merge_members(std::span<const MemberTree> members, const ReadEntry& read,
                                               const Tree* base = nullptr);

// Returns a file of the tree whose name says that one of the member's own ranks wrote it ("rank_3.pt"), if there is
// one.
[[nodiscard]] std::optional<std::string> file_of_a_rank(const MemberTree& member);

}  // namespace gridctl::store
