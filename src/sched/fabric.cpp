// SPDX-License-Identifier: Apache-2.0
#include "sched/fabric.hpp"

#include <algorithm>

namespace gridctl::sched {

namespace {
const GpuLink* link_between(const Inventory& host, const Gpu* one, const Gpu* other) {
  const auto a = static_cast<std::uint32_t>(one - host.gpus.data());
  const auto b = static_cast<std::uint32_t>(other - host.gpus.data());
  for (const GpuLink& link : host.links)
    if ((link.a == a && link.b == b) || (link.a == b && link.b == a)) return &link;
  return nullptr;
}

// A larger value is better; only the order matters, and any fabric is worth more than all PCIe.
int worth(const GpuLink* link) {
  if (link == nullptr) return 0;
  if (is_fabric(link->kind)) return 1000 + 10 * std::min(link->lanes.value_or(1), 18);
  switch (link->kind) {
    case LinkKind::pix: return 5;
    case LinkKind::pxb: return 4;
    case LinkKind::phb: return 3;
    case LinkKind::node: return 2;
    default: return 1;
  }
}

struct Clique {
  std::vector<const Gpu*> gpus;
  int worth = -1;
};

// Grows from one GPU by the one that adds most. Islands of NVLink are cliques, so it finds the best there.
Clique grown_from(const Inventory& host, const std::vector<const Gpu*>& all, const Gpu* first, std::size_t count) {
  Clique group{{first}, 0};
  while (group.gpus.size() < count) {
    const Gpu* best = nullptr;
    int most = -1;
    for (const Gpu* candidate : all) {
      if (std::ranges::find(group.gpus, candidate) != group.gpus.end()) continue;
      int adds = 0;
      for (const Gpu* member : group.gpus) adds += worth(link_between(host, member, candidate));
      if (adds > most) most = adds, best = candidate;
    }
    group.gpus.push_back(best);
    group.worth += most;
  }
  return group;
}

}  // namespace

std::vector<const Gpu*> best_joined(const Inventory& host, std::vector<const Gpu*> gpus, std::size_t count) {
  if (gpus.size() <= count) return gpus;
  if (count < 2 || host.links.empty() || has_nvswitch(host)) {
    gpus.resize(count);
    return gpus;
  }
  Clique best;
  for (const Gpu* first : gpus) {
    Clique group = grown_from(host, gpus, first, count);
    if (group.worth > best.worth) best = std::move(group);
  }
  std::ranges::sort(best.gpus);  // in the order of the host
  return best.gpus;
}

std::optional<std::string> fabric_problem(const Inventory& host, const std::vector<const Gpu*>& gpus) {
  if (gpus.size() < 2 || has_nvswitch(host)) return std::nullopt;
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (std::size_t j = i + 1; j < gpus.size(); ++j) {
      const GpuLink* link = link_between(host, gpus[i], gpus[j]);
      if (link == nullptr || link->kind == LinkKind::unknown || is_fabric(link->kind)) continue;
      return "its GPUs are joined by PCIe (" + std::string(link_kind_name(link->kind)) + "), and class: tight needs " +
             "NVLink, xGMI or Xe Link between them; constraints: {interconnect: any} accepts this host";
    }
  return std::nullopt;
}

bool is_rdma(const Nic& nic, NicKind kind) { return nic.up && !nic.device.empty() && nic.kind == kind; }

std::optional<NicKind> common_rdma(const std::vector<const Inventory*>& hosts) {
  for (const NicKind kind : {NicKind::infiniband, NicKind::roce})
    if (std::ranges::all_of(hosts, [&](const Inventory* host) {
          return std::ranges::any_of(host->nics, [&](const Nic& nic) { return is_rdma(nic, kind); });
        }))
      return kind;
  return std::nullopt;
}

}  // namespace gridctl::sched
