// SPDX-License-Identifier: Apache-2.0
// Describes how the GPUs of one host are joined, and hosts with each other: what a tight job is bound to. Pure. Unknown
// facts forbid nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/inventory.hpp"

namespace gridctl::sched {

// Picks this many of the host's GPUs, the best-joined ones; among equal sets, the first. Returns all of them if there
// are no more.
[[nodiscard]] std::vector<const Gpu*> best_joined(const Inventory& host, std::vector<const Gpu*> gpus,
                                                  std::size_t count);
// Returns why these GPUs are not a tight group: some pair of them has no NVLink, xGMI or Xe Link and no NVSwitch
// between.
[[nodiscard]] std::optional<std::string> fabric_problem(const Inventory& host, const std::vector<const Gpu*>& gpus);

[[nodiscard]] bool is_rdma(const Nic& nic, NicKind kind);  // and it is up
// Returns the kind of RDMA that every host has up; InfiniBand before RoCE.
[[nodiscard]] std::optional<NicKind> common_rdma(const std::vector<const Inventory*>& hosts);

}  // namespace gridctl::sched
