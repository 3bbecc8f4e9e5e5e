// SPDX-License-Identifier: Apache-2.0
// Lists the newest checkpoint of each job that the holder of the key has seen. The list travels with a key file, and
// exposes a remote that shows a new machine an older checkpoint. gridctl-store(5), "KEY FILES". Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "store/store_key.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_newest_max = 200;             // jobs, those with the newest checkpoints
inline constexpr std::string_view k_newest_word = "newest";  // begins each of their lines

struct Newest {
  JobId job;
  std::string job_name;
  CheckpointSeq seq;
  WallTime created_at;  // of the checkpoint
  WallTime seen_at;
  std::string seen_at_remote;  // a remote, or k_seen_in_key_file
  bool operator==(const Newest&) const = default;
};
inline constexpr std::string_view k_seen_in_key_file = "-";

// Writes the lines, and one that authenticates them with the key; empty for none. REQUIRES: names are words.
[[nodiscard]] std::string to_text(const std::vector<Newest>& newest, const StoreKey& key);
// Parses these lines in a text that may contain other lines too. state_unreadable if lines were changed, removed or
// added.
[[nodiscard]] Result<std::vector<Newest>> parse_newest(std::string_view text, const StoreKey& key);

// Keeps the highest number of each job, and at most the k_newest_max with the newest checkpoints.
[[nodiscard]] std::vector<Newest> merged(std::vector<Newest> one, const std::vector<Newest>& other);

}  // namespace gridctl::store
