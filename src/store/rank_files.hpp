// SPDX-License-Identifier: Apache-2.0
// Reads ranks and steps from the names of files. Inside store only. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "store/gang_tree.hpp"

namespace gridctl::store {

inline constexpr std::string_view k_metadata = ".metadata", k_shard = ".distcp";  // of torch.distributed.checkpoint
inline constexpr std::size_t k_metadata_max = 64u << 20;                          // bytes of a metadata that is looked into

[[nodiscard]] std::string_view base_name(std::string_view path);
[[nodiscard]] std::string_view folder_of(std::string_view path);  // "" at the top

// Returns 300 for "step-300", "checkpoint-300", "global_step300", "iter_0000300", "epoch=3-step=300.ckpt".
[[nodiscard]] std::optional<std::int64_t> step_in_name(std::string_view name);

// Describes a path with one number in it, written with at least so many digits: "zero_pp_rank_" 3 "_optim_states.pt".
struct RankFamily {
  std::string before, after;
  std::size_t digits = 1;
  auto operator<=>(const RankFamily&) const = default;
  [[nodiscard]] std::string name_of(std::uint32_t rank) const;
};
// Returns the families in which every rank writes one file, and the ranks that have: each member holds only files of
// its own ranks, and at least two ranks have written. Files that torch's metadata names do not count.
[[nodiscard]] std::map<RankFamily, std::set<std::uint32_t>> rank_families(std::span<const MemberTree> members);

}  // namespace gridctl::store
