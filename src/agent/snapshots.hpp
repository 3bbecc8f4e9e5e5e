// SPDX-License-Identifier: Apache-2.0
// Snapshots of this host as bulk transfers read them.
#pragma once

#include <memory>
#include <optional>

#include "agent/requests.hpp"
#include "store/scan.hpp"
#include "transfer/serve.hpp"

namespace gridctl::agent {

class HostSnapshots final : public transfer::SnapshotSource {
 public:
  explicit HostSnapshots(const Requests& requests) : requests_(requests) {}
  [[nodiscard]] Result<Bytes> manifest(const wire::CheckpointRef& checkpoint) override;
  [[nodiscard]] Result<Bytes> chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) override;

 private:
  // The one that is being read; its descriptors keep it readable.
  struct Open {
    wire::CheckpointRef reference;
    os::Fd directory;
    store::Tree tree;
    std::unique_ptr<store::DirectoryChunks> chunks;
  };
  [[nodiscard]] Result<void> open(const wire::CheckpointRef& checkpoint);

  const Requests& requests_;
  std::unique_ptr<Open> open_;
};

}  // namespace gridctl::agent
