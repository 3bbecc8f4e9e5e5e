// SPDX-License-Identifier: Apache-2.0
// Plans one tightly coupled training on groups of different machines: batch shares, or layers over stages, by speed.
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/search.hpp"

namespace gridctl::plan {

// Holds the share of one group of equal machines.
struct MixedPart {
  Parallelism parallelism;           // of the group's replicas; of layers: of one pipeline, the same in every part
  std::int64_t batch = 0;  // sequences of a step; of layers: the whole batch
  std::vector<int> layers;  // of each of its stages; empty: every replica has all
  double seconds = 0;      // what the group computes in a step
  double peak = 0;         // bytes on its most loaded GPU
};
struct Mixed {
  std::vector<MixedPart> parts;  // in the order of the groups
  double seconds = 0;            // of a step, the exchange between the groups included
  double exchange = 0;           // seconds of that
  double tokens_per_s = 0;
  double usd_per_hour = 0;
  [[nodiscard]] bool by_layers() const { return !parts.empty() && !parts.front().layers.empty(); }
};

// Plans replicas of each group as in its own best plan, with a share of the batch in proportion to its speed; gradients
// are averaged over all. Shares are multiples that every group can divide, so that the sum may be a little less than
// the batch: tokens_per_s counts the actual sum. nullopt: the batch cannot be divided that way. REQUIRES: the groups
// differ only in machines; best.size() == groups.size().
[[nodiscard]] std::optional<Mixed> mix_batches(std::span<const Question> groups, std::span<const Plan> best);

// Plans one pipeline over all groups; faster machines get more layers, as far as their memory holds them. nullopt: none
// fits.
[[nodiscard]] std::optional<Mixed> mix_layers(std::span<const Question> groups);

}  // namespace gridctl::plan
