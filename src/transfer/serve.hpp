// SPDX-License-Identifier: Apache-2.0
// The host's side of bulk transfers. A controller's bytes are not trusted either.
#pragma once

#include <span>
#include <vector>

#include "store/chunk_store.hpp"
#include "transfer/stream.hpp"

namespace gridctl::transfer {

// Where the agent keeps snapshots. not_found for what is not there.
class SnapshotSource {
 public:
  virtual ~SnapshotSource() = default;
  [[nodiscard]] virtual Result<Bytes> manifest(const wire::CheckpointRef& checkpoint) = 0;
  [[nodiscard]] virtual Result<Bytes> chunk(const wire::CheckpointRef& checkpoint, const Digest& digest) = 0;
  // Takes out of `missing` (indices into `chunks`) what snapshots of the job hold and a start of it can read.
  virtual void find(const JobId& /*job*/, std::span<const Digest> /*chunks*/, std::vector<std::uint32_t>& /*missing*/) {}
  // So many bytes of it have been sent: waits as long as nothing more may be.
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

  // True for the operations that this class serves: have, put, seal, manifest, get.
  [[nodiscard]] static bool serves(std::string_view operation);
  // Serves one request, reading its data from the link where it has some. An operation that fails is answered with its
  // error; an error returned from here means that the link is of no more use.
  [[nodiscard]] Result<void> handle(const wire::Frame& request);
  // Makes durable what was put whole, without being asked: a connection that breaks or falls silent is to cost a chunk,
  // not all since the last seal.
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
