// SPDX-License-Identifier: Apache-2.0
#include "control/copies/freight.hpp"

#include <memory>
#include <unordered_set>
#include <utility>

#include "control/copies/chunks.hpp"
#include "control/copies/healing.hpp"
#include "control/copies/moving.hpp"
#include "control/reach/disk_reserve.hpp"
#include "store/chunk_store.hpp"
#include "store/tree.hpp"
#include "store/stored_tree.hpp"
#include "transfer/pull.hpp"
#include "transfer/push.hpp"
#include "wire/results.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_reach_more = std::chrono::seconds{5};     // of a connection that would only help
constexpr std::uint64_t k_checkpoint_bytes_max = 16ull << 40;  // a larger one is a lie (or needs another tool)

using transfer::BulkLink;

// Notes every byte from the host as a sign of life.
class HeardLink : public wire::Link {
 public:
  HeardLink(std::unique_ptr<wire::Link> link, std::shared_ptr<LifeSign> life, os::Clock& clock)
      : link_(std::move(link)), life_(std::move(life)), clock_(clock) {
    life_->heard(clock_.boot());
  }
  Result<void> send(const wire::Frame& frame, BootTime deadline) override { return link_->send(frame, deadline); }
  Result<wire::Frame> receive(BootTime deadline) override {
    TRY_ASSIGN(wire::Frame frame, link_->receive(deadline));
    life_->heard(clock_.boot());
    return frame;
  }

 private:
  std::unique_ptr<wire::Link> link_;
  std::shared_ptr<LifeSign> life_;
  os::Clock& clock_;
};

}  // namespace

Result<BulkLink> StoreFreight::reach(const HostReach& host, Duration patience) {
  TRY_ASSIGN(BulkLink bulk, network_.open(host.provider, clock_.boot() + patience));
  if (host.life != nullptr) bulk.link = std::make_unique<HeardLink>(std::move(bulk.link), host.life, clock_);
  bulk.link = under(host.budget != nullptr ? host.budget : std::make_shared<WorkBudget>(clock_, WorkBudget::Limits{}),
                    std::move(bulk.link));
  return bulk;
}

transfer::Route StoreFreight::route(const HostReach& host, const BulkLink& first) {
  return {*first.link, first.codecs, [this, &host] { return reach(host, k_reach_more); }, first.took};
}

// Each piece of work has its own instance of the store, so that a pack that one cannot seal does not cost another its
// chunks.
Result<std::uint64_t> StoreFreight::push(const HostReach& host, const BulkLink& link, const Digest& root) {
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  TRY_ASSIGN(Bytes manifest, store.get(root));
  return push_part(host, link, {root, std::move(manifest)});
}

Result<std::uint64_t> StoreFreight::push_part(const HostReach& host, const BulkLink& link, const OwnPart& part) {
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  TRY_ASSIGN(const store::Tree tree, store::parse_manifest(part.manifest));
  LinkMeter::Transfer moving(&meter_, host.provider.name, true, clock_);
  MovingFile file(paths_, host.shown_for, host.provider.name, true, clock_);
  const auto shown = [&file](const transfer::TransferStats& stats) {
    file.moved(stats.bytes_sent, stats.bytes_to_send);
    return true;
  };
  TRY_ASSIGN(const transfer::TransferStats stats,
             transfer::push_tree(route(host, link), tree, part.manifest, store, clock_, shown, host.job));
  moving.moved(stats.bytes_moved);
  return tree.total_bytes();
}

namespace {

// Our requests reveal to a host which chunks we lack. The host may learn what we have of the same job and of what it
// sent itself; everything else is requested even if it is already here.
transfer::PullGuard guard_for(const HostReach& host, const store::Tree* earlier, const os::Path& store) {
  transfer::PullGuard guard;
  guard.room = [store](std::uint64_t bytes) { return check_room(store, bytes); };
  if (host.chunks == nullptr) return guard;
  auto same_job = std::make_shared<std::unordered_set<Digest>>();
  if (earlier != nullptr)
    for (const store::Chunk& chunk : earlier->unique_chunks()) same_job->insert(chunk.digest);
  guard.may_reuse = [same_job, had = host.chunks](const Digest& digest) {
    return same_job->contains(digest) || had->has(digest);
  };
  guard.came = [had = host.chunks](const Digest& digest) { had->add(digest); };
  return guard;
}

bool is_a_lie(Code code) { return code == Code::protocol_violation || code == Code::checkpoint_damaged; }

}  // namespace

Result<Pulled> StoreFreight::pull(const HostReach& host, const JobId& job, Epoch epoch,
                                  const wire::HostCheckpoint& checkpoint, const std::optional<Digest>& head) {
  const BootTime began = clock_.boot();
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  TRY_ASSIGN(const os::DiskSpace space, os::disk_space(store.directory()));
  if (host.chunks != nullptr) TRY(host.chunks->may_send(disk_reserve(space), began));
  const Result<store::Tree> earlier =
      head ? store::tree_at(store, *head) : make_error(Code::not_found, "there is no earlier checkpoint");
  const store::Tree* before = earlier ? &*earlier : nullptr;
  TRY_ASSIGN(const BulkLink bulk, reach(host, k_reach_patience));
  LinkMeter::Transfer moving(&meter_, host.provider.name, false, clock_);
  std::uint64_t came = 0;
  MovingFile file(paths_, job, host.provider.name, false, clock_);
  const auto count = [&came, &file](const transfer::TransferStats& stats) {
    came = stats.bytes_sent;
    file.moved(stats.bytes_sent, stats.bytes_to_send);
    return true;
  };
  const Result<transfer::Pulled> result = transfer::pull_checkpoint(
      route(host, bulk), {job, epoch, checkpoint.number}, checkpoint.root, k_checkpoint_bytes_max, store, clock_, count,
      before, guard_for(host, before, store.directory()));
  if (!result) {
    if (host.chunks != nullptr && is_a_lie(result.error().code)) host.chunks->wasted(came, clock_.boot());
    return result.error();
  }
  Pulled pulled;
  pulled.from = checkpoint;
  pulled.bytes = result->tree.total_bytes();
  pulled.files = result->tree.file_count();
  pulled.stored_bytes = result->stats.bytes_sent;
  moving.moved(result->stats.bytes_moved);
  pulled.took = clock_.boot() - began;
  return pulled;
}

Result<Brought> StoreFreight::bring(const HostReach& host, const JobId& job, Epoch epoch, const Digest& root,
                                    const std::optional<Digest>& before) {
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  const Result<store::Tree> earlier =
      before ? store::tree_at(store, *before) : make_error(Code::not_found, "none before");
  TRY_ASSIGN(const BulkLink bulk, reach(host, k_reach_patience));
  LinkMeter::Transfer moving(&meter_, host.provider.name, false, clock_);
  TRY_ASSIGN(const transfer::Pulled pulled,
             transfer::pull_checkpoint(route(host, bulk), {job, epoch, wire::k_results_number}, root,
                                       k_checkpoint_bytes_max, store, clock_, {}, earlier ? &*earlier : nullptr));
  moving.moved(pulled.stats.bytes_moved);
  if (!earlier) return Brought{pulled.root, pulled.tree.file_count(), pulled.tree.total_bytes()};
  TRY_ASSIGN(const store::Tree all, store::overlay(*earlier, pulled.tree));
  TRY_ASSIGN(const Digest whole, store::put_tree(store, all));
  TRY(store.seal());
  return Brought{whole, all.file_count(), all.total_bytes()};
}

Result<CopiesOf> StoreFreight::copies_of(const JobId& job, CheckpointSeq seq) {
  CopiesOf copies{job, seq, {}};
  TRY_ASSIGN(copies.nearest_first, remotes_with(registry_, job, seq));
  return copies;
}

Result<std::string> StoreFreight::heal(const CopiesOf& copies, const Digest& root) {
  if (copies.nearest_first.empty()) return std::string();
  TRY_ASSIGN(store::ChunkStore store, open_chunks(paths_));
  TRY_ASSIGN(const HealedFrom healed,
             heal_from(paths_, network_, store, copies.nearest_first, {copies.job, copies.seq}, root, clock_));
  return healed.healed.blobs == 0 ? std::string() : describe(healed);
}

}  // namespace gridctl::control
