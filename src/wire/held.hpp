// SPDX-License-Identifier: Apache-2.0
// Lists the leases of a host, by its ledger: part of a poll reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.hpp"

namespace gridctl::wire {

inline constexpr std::size_t k_held_max = 256;  // leases told in one reply

// Describes one lease. Only its own controller gets `job` and `epoch`; for others they are empty.
struct HeldShare {
  JobId job;
  Epoch epoch;
  std::vector<std::string> gpu_uuids;
  double cpus = 0;
  std::uint64_t memory_bytes = 0;
  bool operator==(const HeldShare&) const = default;
};

}  // namespace gridctl::wire
