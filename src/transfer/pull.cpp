// SPDX-License-Identifier: Apache-2.0
#include "transfer/pull.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace gridctl::transfer {
namespace {

using store::Chunk;
using wire::FrameKind;

class Pull {
 public:
  Pull(const Conversation& with, wire::CheckpointRef checkpoint, store::ChunkStore& into, const Progress& progress)
      : with_(with), checkpoint_(std::move(checkpoint)), into_(into), progress_(progress) {}

  Result<Bytes> manifest(const Digest& expected_root) {
    const std::uint32_t stream = next_stream_++;
    TRY(with_.send(FrameKind::request, stream, wire::encode_manifest(checkpoint_)));
    TRY(with_.reply(stream));
    TRY_ASSIGN(Bytes manifest, with_.data(stream, store::k_manifest_max));
    if (store::root_of(manifest) == expected_root) return manifest;
    return make_error(Code::checkpoint_damaged, "the host's manifest does not hash to " + to_hex(expected_root));
  }

  Result<TransferStats> chunks(const std::vector<Chunk>& wanted) {
    stats_.chunks = wanted.size();
    for (const Chunk& chunk : wanted) stats_.bytes += chunk.size;
    TRY_ASSIGN(const std::vector<Chunk> missing, lacking(wanted));
    TRY(tell());
    std::size_t asked = 0;
    while (asked < missing.size() || !in_flight_.empty()) {
      while (asked < missing.size() && in_flight_.size() < k_gets_in_flight) {
        const std::size_t count = std::min(k_get_batch, missing.size() - asked);
        const auto begin = missing.begin() + static_cast<std::ptrdiff_t>(asked);
        TRY(ask({begin, begin + static_cast<std::ptrdiff_t>(count)}));
        asked += count;
      }
      TRY(take_batch());
    }
    return stats_;
  }

  Result<void> finish(const std::vector<Chunk>& wanted, const Digest& root, ByteView manifest) {
    TRY(into_.put(root, manifest));
    TRY(into_.seal());
    TRY_ASSIGN(const std::vector<Chunk> lost, lacking(wanted));
    if (lost.empty()) return {};
    Error error = make_error(Code::busy, std::to_string(lost.size()) + " chunks were collected while the rest came");
    error.retry = Retry::same_host_later;
    return error;
  }

 private:
  struct Batch {
    std::uint32_t stream;
    std::vector<Chunk> chunks;
  };

  Result<std::vector<Chunk>> lacking(const std::vector<Chunk>& wanted) {
    std::vector<Digest> digests;
    digests.reserve(wanted.size());
    for (const Chunk& chunk : wanted) digests.push_back(chunk.digest);
    TRY_ASSIGN(const auto indices, into_.missing(digests));
    std::vector<Chunk> missing;
    for (const std::uint32_t index : indices) missing.push_back(wanted[index]);
    return missing;
  }

  Result<void> ask(std::vector<Chunk> batch) {
    wire::GetRequest request{checkpoint_, {}};
    for (const Chunk& chunk : batch) request.chunks.push_back(chunk.digest);
    in_flight_.push_back({next_stream_++, std::move(batch)});
    return with_.send(FrameKind::request, in_flight_.back().stream, wire::encode(request));
  }

  Result<void> take_batch() {
    const Batch batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    TRY(with_.reply(batch.stream));
    for (const Chunk& chunk : batch.chunks) {
      TRY_ASSIGN(const Bytes content, with_.data(batch.stream, chunk.size));
      if (content.size() != chunk.size)
        return make_error(Code::checkpoint_damaged,
                          "the host sent chunk " + to_hex(chunk.digest) + " with a wrong length");
      TRY(into_.put(chunk.digest, content));
      stats_.chunks_sent += 1;
      stats_.bytes_sent += chunk.size;
      TRY(tell());
    }
    return {};
  }

  Result<void> tell() {
    if (!progress_ || progress_(stats_)) return {};
    return make_error(Code::cancelled, "transfer was stopped");
  }

  Conversation with_;
  wire::CheckpointRef checkpoint_;
  store::ChunkStore& into_;
  const Progress& progress_;
  TransferStats stats_;
  std::deque<Batch> in_flight_;
  std::uint32_t next_stream_ = 1;
};

}  // namespace

Result<Pulled> pull_checkpoint(wire::Link& link, const wire::CheckpointRef& checkpoint, const Digest& expected_root,
                               std::uint64_t bytes_quota, store::ChunkStore& into, const os::Clock& clock,
                               const Progress& progress) {
  Pull pull({link, clock}, checkpoint, into, progress);
  TRY_ASSIGN(const Bytes manifest, pull.manifest(expected_root));
  TRY_ASSIGN(store::Tree tree, store::parse_manifest(manifest, {bytes_quota, store::k_entries_max, true}));
  const std::vector<Chunk> wanted = tree.unique_chunks();
  auto stats = pull.chunks(wanted);
  if (!stats) {
    static_cast<void>(into.seal());  // what came is kept for the next attempt
    return std::move(stats).error();
  }
  TRY(pull.finish(wanted, expected_root, manifest));
  return Pulled{std::move(tree), expected_root, *stats};
}

}  // namespace gridctl::transfer
