// SPDX-License-Identifier: Apache-2.0
#include "freight.hpp"

#include "truth.hpp"

namespace gridctl::sim {

namespace {
constexpr double k_torn_pushes = 0.3;  // as seldom as pulls are torn; and of those so many
}

Result<transfer::BulkLink> SimFreight::reach(const control::HostReach& host, Duration patience) {
  return net_.open(host.provider, run_.clock().boot() + patience, host.life);
}

Nanos SimFreight::travel() const { return world_.rng.between(k_ms, std::max(world_.options.transfer_time, k_ms)); }

Result<std::uint64_t> SimFreight::push(const control::HostReach& host, const transfer::BulkLink&, const Digest& root) {
  if (world_.truth->content(root) == nullptr) return make_error(Code::not_found, "no such tree is here");
  run_.pause(Duration{travel()});
  if (!world_.healed && world_.rng.chance(k_torn_pushes * world_.options.torn_transfer))
    return make_error(Code::host_unreachable, "the connection broke");
  if (world_.hosts[static_cast<std::size_t>(SimNetwork::host_of(host.provider.name))]->disk_full)
    return make_error(Code::no_space, "the host's disk is full");
  return std::uint64_t{1000};
}

Result<control::Pulled> SimFreight::pull(const control::HostReach& host, const JobId& job, Epoch epoch,
                                         const wire::HostCheckpoint& checkpoint, const std::optional<Digest>&) {
  const BootTime began = run_.clock().boot();
  TRY_ASSIGN(const transfer::BulkLink link, reach(host, control::k_reach_patience));
  const bool torn = !world_.healed && world_.rng.chance(world_.options.torn_transfer);
  const BootTime patience = run_.clock().boot() + control::k_reach_patience + Duration{world_.options.transfer_time};
  const wire::CheckpointRef wanted{job, epoch, checkpoint.number};
  const int from = SimNetwork::host_of(host.provider.name);
  TRY_ASSIGN(const Digest read, net_.ask<Digest>(
                                    from, patience,
                                    [this, wanted](Host& there) { return there.read_snapshot(laptop_, wanted); },
                                    travel()));
  if (torn) return make_error(Code::host_unreachable, "the connection broke");
  world_.heard(laptop_, from);
  if (host.life != nullptr) host.life->heard(run_.clock().boot());
  if (read != checkpoint.root) return make_error(Code::checkpoint_damaged, "it hashes to something else");
  if (disk_full_) return make_error(Code::no_space, "the laptop's disk is full");
  world_.truth->stored(laptop_, checkpoint.root);
  control::Pulled pulled;
  pulled.from = checkpoint;
  pulled.bytes = checkpoint.bytes;
  pulled.stored_bytes = checkpoint.bytes;
  pulled.files = checkpoint.files;
  pulled.took = run_.clock().boot() - began;
  return pulled;
}

}  // namespace gridctl::sim
