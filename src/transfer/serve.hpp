// SPDX-License-Identifier: Apache-2.0
// Serves the host's side of bulk transfers. A controller's bytes are not trusted either.
#pragma once

#include <span>
#include <vector>

#include "store/chunk_store.hpp"
#include "transfer/stream.hpp"

namespace gridctl::transfer {

// Provides the agent's snapshots. not_found for missing ones.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  [[nodiscard]] virtual Result<Bytes> manifest(const wire::CheckpointRef& checkpoint) = 0;
  [[nodiscard]] virtual Result<Bytes> chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) = 0;
  // Removes from `missing` (indices into `chunks`) the chunks that snapshots of the job hold and its start can read.
  virtual void find(const JobId& /*job*/, std::span<const Digest> /*chunks*/, std::vector<std::uint32_t>& /*missing*/) {}
  // Notes that this many bytes of it have been sent: waits while no more may be sent.
  virtual void sent(const wire::CheckpointRef& checkpoint, std::size_t bytes) = 0;
};

class BulkServer {
 public:
  // All must outlive it. `takes`: what the controller decodes.
  BulkServer(wire::Link& link, store::ChunkStore& cache, SnapshotSource& snapshots, const os::Clock& clock,
             Codecs takes = {})
      : with_{link, clock}, cache_(cache), snapshots_(snapshots), takes_(takes) {}
  ~BulkServer();  // keeps
  BulkServer(const BulkServer&) = delete;
  BulkServer& operator=(const BulkServer&) = delete;

  // Returns true for the operations that this class serves: have, put, seal, manifest, get.
  [[nodiscard]] static bool serves(std::string_view operation);
  // Serves one request, and reads its data from the link if there is any. An operation that fails is answered with its
  // error; an error returned from here means that the link is no longer usable.
  [[nodiscard]] Result<void> handle(const wire::Frame& request);
  // Makes completely received chunks durable without a request: a connection that breaks or falls silent should cost a
  // chunk, not everything since the last seal.
  void keep();

 private:
  Result<void> have(const wire::Frame& request);
  Result<void> put(const wire::Frame& request);
  Result<void> seal(const wire::Frame& request);
  Result<void> manifest(const wire::Frame& request);
  Result<void> get(const wire::Frame& request);
  Result<void> refuse(const wire::Frame& request, const Error& error);

  Conversation with_;
  store::ChunkStore& cache_;
  SnapshotSource& snapshots_;
  const Codecs takes_;
  EncodingWorth worth_;
  bool unsealed_ = false;
};

}  // namespace gridctl::transfer
