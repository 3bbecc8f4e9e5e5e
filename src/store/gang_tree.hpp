// SPDX-License-Identifier: Apache-2.0
// One checkpoint out of the parts that several hosts hold: each has what its own ranks wrote. Pure; the only look into
// files goes through a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// What one host holds of a checkpoint.
struct MemberTree {
  std::string member;  // for people
  std::uint32_t first_rank = 0, ranks = 1;
  const Tree* tree = nullptr;        // borrowed
  std::optional<std::int64_t> step{};  // that the job told with it ($GRIDCTL_METRICS)
  std::optional<BootTime> saved_at{};  // by one clock for all members
};

// The step that a tree holds by the names in it: the greatest number of folders and files such as step-300,
// global_step5, checkpoint-500, iter_0000100, epoch=3-step=300.ckpt. nullopt: no such names.
[[nodiscard]] std::optional<std::int64_t> step_named(const Tree& tree);

// Of the parts that each member has, oldest first, the newest set that is of one step: positions, one for each member.
// By what the job told, else by names, else, where neither tells, by when they were saved; without that the newest of
// each. A member whose newest part has no file goes with anything. nullopt: no step is whole at all, or nobody can say
// what belongs together.
[[nodiscard]] std::optional<std::vector<std::size_t>> newest_common(std::span<const std::vector<MemberTree>> members);

// The same path with other content. Each member was given all of the restored directory: what it holds as it was given
// yields to what another has made of it, and is no conflict. What rank 0's host holds is kept; logs and the like differ
// as a matter of course.
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

// Everything that any member holds; what several hold alike is kept once. Whole when
//   each .metadata of torch's distributed checkpoints finds every file that it names, and no such file lies without one;
//   of files that each rank writes one of (zero_pp_rank_3_…, rank_3.pt, random_states_3.pkl) no rank's is missing.
// The error is that of a path which is a file here and a folder there. REQUIRES: members in the order of their ranks.
//
// `base`: the checkpoint that all of them were given whole at the start; nullptr: none, or not known. What a member
// holds as it was given yields to what another has made of it. Where one rank has written its file anew, all must have;
// and those of ranks that there are no more, since the gang has become smaller, are left out.
[[nodiscard]] Result<MergedTree> merge_members(std::span<const MemberTree> members, const ReadEntry& read,
                                               const Tree* base = nullptr);

// A file of the tree whose name says that it is of one of the member's own ranks ("rank_3.pt"), if there is one.
[[nodiscard]] std::optional<std::string> file_of_a_rank(const MemberTree& member);

}  // namespace gridctl::store
