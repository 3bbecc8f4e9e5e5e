// SPDX-License-Identifier: Apache-2.0
// Lets bulk transfers read the snapshots of this host.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/own_snapshots.hpp"
#include "agent/requests.hpp"
#include "store/scan.hpp"
#include "transfer/serve.hpp"

namespace gridctl::agent {

// Returns how long a sender of this many bytes of an attempt's checkpoints has to wait, so that all senders together
// keep to the limit (bytes a second).
[[nodiscard]] Result<Duration> reserve_upload(const AttemptDir& attempt, std::uint64_t bytes, std::uint64_t limit,
                                              BootTime now);

class HostSnapshots final : public transfer::SnapshotSource {
 public:
  HostSnapshots(const Requests& requests, OwnSnapshots& own) : requests_(requests), own_(own) {}
  [[nodiscard]] Result<Bytes> manifest(const wire::CheckpointRef& checkpoint) override;
  [[nodiscard]] Result<Bytes> chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) override;
  void find(const JobId& job, std::span<const Digest> chunks, std::vector<std::uint32_t>& missing) override {
    own_.find(job, chunks, missing);
  }
  void sent(const wire::CheckpointRef& checkpoint, std::size_t bytes) override;
  [[nodiscard]] std::uint64_t upload_limit(const wire::CheckpointRef& checkpoint);  // of its attempt, 0: none
  // Returns the checkpoints of the same attempt, the given one first, then the others from the newest.
  [[nodiscard]] std::vector<wire::CheckpointRef> all_like(const wire::CheckpointRef& checkpoint) const;
  // Reports about the checkpoint are differences to these of its attempt: see note_bases().
  [[nodiscard]] Result<void> needed(const wire::CheckpointRef& checkpoint, const std::set<std::uint64_t>& bases) const;

 private:
  // Holds descriptors that keep it readable.
  struct Open {
    wire::CheckpointRef reference;
    os::Fd directory;
    store::Tree tree;
    std::unique_ptr<store::DirectoryChunks> chunks;
  };
  struct Files {
    Path files, manifest;
  };
  [[nodiscard]] Result<Files> find(const wire::CheckpointRef& checkpoint) const;  // where it is, if it is there
  [[nodiscard]] Result<Open*> open(const wire::CheckpointRef& checkpoint);

  const Requests& requests_;
  OwnSnapshots& own_;
  std::optional<std::pair<wire::CheckpointRef, std::uint64_t>> limit_;  // of the one that was asked for last
  std::vector<std::unique_ptr<Open>> open_;                             // a few, that were used last at the end
};

}  // namespace gridctl::agent
