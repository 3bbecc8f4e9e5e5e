// SPDX-License-Identifier: Apache-2.0
// Selects the part of a checkpoint that one host of a gang needs, if all ranks have written it. Pure; the only look
// into files goes through a callback.
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

// Leaves out only what certainly belongs to ranks of other hosts, and only if as many ranks have written it as run now:
//   shards of torch's distributed checkpoints that contain only tensors of which every rank has written its own piece,
//   as their .metadata says. Values that several ranks share are in any one rank's shard, which all need then;
//   files that each rank has written, by their names (rank_3.pt, random_states_3.pkl), if none is missing and there are
//   none of other ranks. DeepSpeed's are not among them: each rank reads those of all.
[[nodiscard]] Tree local_part(const Tree& tree, RankRange ranks, std::uint32_t world, const ReadFile& read);

// Returns, among the shards that a .metadata of torch names, those that hold data of one rank only. The error explains
// why this cannot be decided.
[[nodiscard]] Result<std::set<std::string>> shards_of_one_rank(ByteView metadata, std::uint32_t world);

}  // namespace gridctl::store
