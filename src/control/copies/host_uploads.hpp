// SPDX-License-Identifier: Apache-2.0
// Lets the host that made a checkpoint upload the packs of its copy to the bucket itself, with requests signed here:
// our uplink is not in the way, and no credential leaves this machine. gridctl-store(5), "REMOTES IN S3".
#pragma once

#include <map>
#include <optional>

#include "control/reach/agent_network.hpp"
#include "os/clock.hpp"
#include "registry/all_records.hpp"
#include "store/copying.hpp"
#include "store/recipe.hpp"
#include "transfer/parallel_transfer.hpp"

namespace gridctl::control {

// Remembers results between checkpoints. One thread uses it at a time.
struct UploadMemory {
  struct Host {
    BootTime not_before{};
    Duration pause{};
  };
  std::map<HostName, Host> hosts;         // and when those that could not are asked again
  std::map<store::BaseId, Digest> names;  // of what differences were made from
};

class HostUploads {
 public:
  struct With {
    AgentNetwork& net;
    registry::AllRecords& registry;
    store::ChunkStore& chunks;
    const store::StoreKey& key;
    store::Backend& remote;
    os::Clock& clock;
    UploadMemory& memory;
  };
  // Handles one checkpoint. All arguments must outlive it.
  HostUploads(With with, const registry::Checkpoint& checkpoint);

  // Leaves failed packs to the caller, and does not try again for this checkpoint. Blocks.
  void put(const store::PackFile& pack, const std::function<bool()>& go_on);

 private:
  [[nodiscard]] Result<void> find_host();
  [[nodiscard]] Result<void> list_blobs();
  [[nodiscard]] Result<Digest> name_of(const store::BaseId& base);
  [[nodiscard]] Result<void> upload(const store::PackFile& pack, const std::function<bool()>& go_on);

  With with_;
  const registry::Checkpoint& checkpoint_;
  std::optional<registry::Provider> host_;
  store::KnownBlobs blobs_;  // of the checkpoint
  transfer::BulkLink link_;
  std::uint64_t limit_ = 0;  // bytes a second that the host may send
  bool looked_ = false, given_up_ = false;
};

}  // namespace gridctl::control
