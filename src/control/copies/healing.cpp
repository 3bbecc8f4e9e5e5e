// SPDX-License-Identifier: Apache-2.0
#include "control/copies/healing.hpp"

#include "control/copies/chunks.hpp"

namespace gridctl::control {

namespace {

Result<store::Healed> heal_from_one(AgentNetwork& net, store::ChunkStore& chunks, const RemoteAccess& access,
                                    const store::StoreKey& key, const store::RecordName& checkpoint, const Digest& root,
                                    os::Clock& clock) {
  TRY_ASSIGN(const std::unique_ptr<store::Backend> backend, open_remote(access, net, clock));
  return store::heal_checkpoint(chunks, {backend.get(), &key}, checkpoint, root);
}

}  // namespace

Result<HealedFrom> heal_from(const Paths& paths, AgentNetwork& net, store::ChunkStore& chunks,
                             const std::vector<RemoteAccess>& nearest_first, const store::RecordName& checkpoint,
                             const Digest& root, os::Clock& clock) {
  TRY_ASSIGN(const std::optional<store::StoreKey> key, load_key(paths));
  if (!key) return make_error(Code::state_unreadable, "there is no store key", "gridctl key import FILE");
  const std::string name = checkpoint_name(checkpoint.job, checkpoint.seq);
  Error failed = make_error(
      Code::checkpoint_damaged,
      name + " is damaged here, and " + (nearest_first.empty() ? "no remote has a copy" : "no copy could replace it"));
  for (const RemoteAccess& access : nearest_first) {
    Result<store::Healed> healed = heal_from_one(net, chunks, access, *key, checkpoint, root, clock);
    if (healed) return HealedFrom{*healed, access.remote.name};
    failed.context.push_back(access.remote.name + ": " + healed.error().one_line());
  }
  return failed;
}

std::string describe(const HealedFrom& healed) {
  return std::to_string(healed.healed.blobs) + (healed.healed.blobs == 1 ? " chunk, " : " chunks, ") +
         format_size(healed.healed.bytes) + ", from " + healed.remote;
}

}  // namespace gridctl::control
