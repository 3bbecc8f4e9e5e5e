// SPDX-License-Identifier: Apache-2.0
// The part of a checkpoint that one host of a gang needs, when all ranks have written it. Pure; the only look into
// files goes through a callback.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

struct RankRange {
  std::uint32_t first = 0, count = 1;
  [[nodiscard]] bool has(std::uint32_t rank) const { return rank >= first && rank - first < count; }
};
using ReadFile = std::function<Result<Bytes>(const Entry&)>;

// Left out is only what surely belongs to ranks of other hosts, and only when as many ranks have written it as run now:
//   shards of torch's distributed checkpoints in which nothing lies but tensors of which every rank has written a piece of
//   its own, as their .metadata says. Values that several ranks hold alike lie in any one's shard, which all need then;
//   files of which each rank has written one, as their names say (rank_3.pt, random_states_3.pkl), when none is missing
//   and there are none of further ranks. DeepSpeed's are not among them: each rank looks for those of all.
[[nodiscard]] Tree local_part(const Tree& tree, RankRange ranks, std::uint32_t world, const ReadFile& read);

// Returns, among the shards that a .metadata of torch names, those that hold data of one rank only. The error explains
// why this cannot be decided.
[[nodiscard]] Result<std::set<std::string>> shards_of_one_rank(ByteView metadata, std::uint32_t world);

}  // namespace gridctl::store
