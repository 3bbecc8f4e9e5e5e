// SPDX-License-Identifier: Apache-2.0
// Snapshots of this host as bulk transfers read them.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "agent/requests.hpp"
#include "store/scan.hpp"
#include "transfer/serve.hpp"

namespace gridctl::agent {

class HostSnapshots final : public transfer::SnapshotSource {
 public:
  explicit HostSnapshots(const Requests& requests) : requests_(requests) {}
  [[nodiscard]] Result<Bytes> manifest(const wire::CheckpointRef& checkpoint) override;
  [[nodiscard]] Result<Bytes> chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) override;
  // Those of the same attempt, the given one first, then the others from the newest.
  [[nodiscard]] std::vector<wire::CheckpointRef> all_like(const wire::CheckpointRef& checkpoint) const;
  // What was told of the checkpoint are differences to these of its attempt: see note_bases().
  [[nodiscard]] Result<void> needed(const wire::CheckpointRef& checkpoint, const std::set<std::uint64_t>& bases) const;

 private:
  // Its descriptors keep it readable.
  struct Open {
    wire::CheckpointRef reference;
    os::Fd directory;
    store::Tree tree;
    std::unique_ptr<store::DirectoryChunks> chunks;
  };
  [[nodiscard]] Result<Open*> open(const wire::CheckpointRef& checkpoint);

  const Requests& requests_;
  std::vector<std::unique_ptr<Open>> open_;  // a few, that were used last at the end
};

}  // namespace gridctl::agent
