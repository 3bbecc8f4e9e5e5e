// SPDX-License-Identifier: Apache-2.0
#include "agent/held.hpp"

#include <cmath>

#include "agent/attempt_dir.hpp"

namespace gridctl::agent {

namespace {
constexpr std::size_t k_gpu_id_max = 128;            // bytes; a UUID has 40
constexpr std::size_t k_held_bytes_max = 64 * 1024;  // of GPU ids in one reply
}  // namespace

// Every user can write the ledger, so entries that would make the reply too large or unreadable are left out.
std::optional<std::vector<wire::HeldShare>> shares_of(const std::vector<Lease>& leases, const ControllerId& asking) {
  if (leases.size() > wire::k_held_max) return std::nullopt;
  std::vector<wire::HeldShare> shares;
  std::size_t bytes = 0;
  for (const Lease& lease : leases) {
    const bool sane = std::isfinite(lease.cpus) && lease.cpus >= 0;
    wire::HeldShare share{{}, {}, {}, sane ? lease.cpus : 0, lease.memory_bytes};
    for (const std::string& gpu : lease.gpus)
      if (gpu.size() <= k_gpu_id_max) share.gpu_uuids.push_back(gpu), bytes += gpu.size();
    if (lease.controller == asking && check_component("a job", lease.job.value))
      share.job = lease.job, share.epoch = lease.epoch;
    shares.push_back(std::move(share));
  }
  if (bytes > k_held_bytes_max) return std::nullopt;
  return shares;
}

std::optional<std::vector<wire::HeldShare>> held_shares(Ledger& ledger, const ControllerId& asking) {
  const Result<std::vector<Lease>> leases = ledger.valid();
  if (!leases) return std::nullopt;
  return shares_of(*leases, asking);
}

}  // namespace gridctl::agent
