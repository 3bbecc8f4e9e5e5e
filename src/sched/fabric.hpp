// SPDX-License-Identifier: Apache-2.0
// How the GPUs of one host are joined, and hosts among each other: what a tight job binds itself to. Pure. What a host
// does not tell forbids nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/inventory.hpp"

namespace gridctl::sched {

// Picks that many of these GPUs of the host, the best-joined ones; of equal sets, the first. Returns all of them when
// there are no more.
[[nodiscard]] std::vector<const Gpu*> best_joined(const Inventory& host, std::vector<const Gpu*> gpus,
                                                  std::size_t count);
// Why these GPUs are no tight group: some pair of them has no NVLink, xGMI or Xe Link and no NVSwitch between.
[[nodiscard]] std::optional<std::string> fabric_problem(const Inventory& host, const std::vector<const Gpu*>& gpus);

// The kind of RDMA that two hosts both have up; InfiniBand before RoCE.
[[nodiscard]] std::optional<NicKind> rdma_between(const Inventory& a, const Inventory& b);

}  // namespace gridctl::sched
