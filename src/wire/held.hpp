// SPDX-License-Identifier: Apache-2.0
// The leases of a host, by its ledger: part of a poll reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace gridctl::wire {

inline constexpr std::size_t k_held_max = 256;  // leases told in one reply

// One lease. `job` and `epoch` are told only to the controller whose it is; of somebody else's they are empty.
struct HeldShare {
  JobId job;
  Epoch epoch;
  std::vector<std::string> gpu_uuids;
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  bool operator==(const HeldShare&) const = default;
};

}  // namespace gridctl::wire
