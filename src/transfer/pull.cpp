// SPDX-License-Identifier: Apache-2.0
#include "transfer/pull.hpp"

#include <atomic>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "os/mutex.hpp"

namespace gridctl::transfer {
namespace {

using store::Chunk;
using wire::FrameKind;

constexpr std::uint32_t k_manifest_stream = 1;

std::vector<Digest> digests_of(const std::vector<Chunk>& chunks) {
  std::vector<Digest> digests;
  digests.reserve(chunks.size());
  for (const Chunk& chunk : chunks) digests.push_back(chunk.digest);
  return digests;
}

// Equal bytes have one length: a manifest that gives a chunk two, or another one than the chunk has here, describes
// files that cannot exist.
Result<void> check_lengths(const store::Tree& tree) {
  std::unordered_map<Digest, std::uint32_t> lengths;
  for (const store::Entry& entry : tree.entries)
    for (const Chunk& chunk : entry.chunks)
      if (lengths.emplace(chunk.digest, chunk.size).first->second != chunk.size)
        return make_error(Code::checkpoint_damaged, "the host's manifest gives a chunk two lengths");
  return {};
}

// Receives chunks for all connections of a pull.
class Sink {
 public:
  Sink(store::ChunkStore& into, std::unordered_map<Digest, Digest> earlier, const PullGuard& guard)
      : into_(into), earlier_(std::move(earlier)), guard_(guard) {}

  // Returns the chunks to ask for.
  Result<std::vector<Chunk>> lacking(const std::vector<Chunk>& wanted) {
    TRY_ASSIGN(const std::vector<Chunk> absent, missing(wanted));
    if (!guard_.may_reuse) return absent;
    std::unordered_set<Digest> away;
    for (const Chunk& chunk : absent) away.insert(chunk.digest);
    const os::MutexLock lock(mutex_);
    std::vector<Chunk> asked;
    for (const Chunk& chunk : wanted)
      if (away.contains(chunk.digest) || !(came_.contains(chunk.digest) || guard_.may_reuse(chunk.digest)))
        asked.push_back(chunk);
    return asked;
  }

  Result<void> put(const Chunk& chunk, ByteView content) {
    if (content.size() != chunk.size)
      return make_error(Code::checkpoint_damaged, "a chunk has a different length than the manifest says");
    const auto before = earlier_.find(chunk.digest);
    TRY(into_.put(chunk.digest, content, before == earlier_.end() ? nullptr : &before->second));
    if (guard_.came) guard_.came(chunk.digest);
    {
      const os::MutexLock lock(mutex_);
      came_.insert(chunk.digest);
    }
    to_come_ -= chunk.size;
    if (unsealed_.fetch_add(chunk.size) + chunk.size < k_seal_period) return {};
    unsealed_ = 0;
    if (guard_.room) TRY(guard_.room(to_come_));
    return into_.seal();
  }

  // Called before the first chunk is requested.
  Result<void> make_room(const std::vector<Chunk>& asked) {
    std::uint64_t bytes = 0;
    for (const Chunk& chunk : asked) bytes += chunk.size;
    to_come_ = bytes;
    return guard_.room ? guard_.room(bytes) : Result<void>{};
  }

  Result<void> finish(const std::vector<Chunk>& wanted, const Digest& root, ByteView manifest) {
    TRY(into_.put(root, manifest));
    TRY(into_.seal());
    TRY_ASSIGN(const std::vector<Chunk> lost, missing(wanted));
    if (lost.empty()) return {};
    Error error = make_error(Code::busy, std::to_string(lost.size()) + " chunks were collected during the transfer");
    error.retry = Retry::same_host_later;
    return error;
  }

 private:
  // Returns the chunks that are missing here. Chunks that are here must have the length in the manifest.
  Result<std::vector<Chunk>> missing(const std::vector<Chunk>& wanted) {
    const std::vector<Digest> digests = digests_of(wanted);
    TRY_ASSIGN(const auto indices, into_.missing(digests));
    std::vector<Chunk> absent;
    for (const std::uint32_t index : indices) absent.push_back(wanted[index]);
    TRY_ASSIGN(const auto lengths, into_.lengths(digests));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (lengths[i] && *lengths[i] != wanted[i].size)
        return make_error(Code::checkpoint_damaged, "the host's manifest gives chunk " + to_hex(wanted[i].digest) +
                                                        " the length " + std::to_string(wanted[i].size) +
                                                        ", and it has " + std::to_string(*lengths[i]));
    return absent;
  }

  store::ChunkStore& into_;
  const std::unordered_map<Digest, Digest> earlier_;  // in place of a chunk
  const PullGuard& guard_;
  os::Mutex mutex_;
  std::unordered_set<Digest> came_ GRIDCTL_GUARDED_BY(mutex_);  // in this pull
  std::atomic<std::uint64_t> unsealed_{0}, to_come_{0};
};

// Represents one connection: requests the next chunks while earlier ones arrive.
class Fetcher {
 public:
  Fetcher(Conversation with, const wire::CheckpointRef& checkpoint, ParallelTransfer& haul, Sink& sink)
      : with_(std::move(with)), checkpoint_(checkpoint), haul_(haul), sink_(sink) {}

  Result<void> run() {
    for (bool more = true;;) {
      while (more && in_flight_.size() < k_gets_in_flight) {
        std::vector<Chunk> batch = haul_.take(with_.link, k_get_bytes, k_get_batch);
        more = !batch.empty();
        if (more) TRY(ask(std::move(batch)));
      }
      if (in_flight_.empty()) return {};
      TRY(take_batch());
    }
  }

 private:
  struct Batch {
    std::uint32_t stream;
    std::vector<Chunk> chunks;
  };

  Result<void> ask(std::vector<Chunk> batch) {
    const wire::GetRequest request{checkpoint_, digests_of(batch)};
    in_flight_.push_back({next_stream_++, std::move(batch)});
    return with_.send(FrameKind::request, in_flight_.back().stream, wire::encode(request));
  }

  Result<void> take_batch() {
    const Batch batch = std::move(in_flight_.front());
    in_flight_.pop_front();
    TRY(with_.reply(batch.stream));
    for (const Chunk& chunk : batch.chunks) {
      TRY_ASSIGN(Parcel parcel, with_.parcel(batch.stream, chunk.size));
      auto content = unpack(std::move(parcel), chunk.size, Codecs::ours());
      if (!content) return std::move(content).context("while fetching chunk " + to_hex(chunk.digest)).error();
      TRY(sink_.put(chunk, *content));
      TRY(haul_.done(chunk));
    }
    return {};
  }

  Conversation with_;
  const wire::CheckpointRef& checkpoint_;
  ParallelTransfer& haul_;
  Sink& sink_;
  std::deque<Batch> in_flight_;
  std::uint32_t next_stream_ = k_manifest_stream + 1;
};

Result<Bytes> fetch_manifest(Conversation& with, const wire::CheckpointRef& checkpoint, const Digest& expected_root) {
  TRY(with.send(FrameKind::request, k_manifest_stream, wire::encode_manifest(checkpoint)));
  TRY(with.reply(k_manifest_stream));
  TRY_ASSIGN(Bytes manifest, with.data(k_manifest_stream, store::k_manifest_max));
  if (store::root_of(manifest) == expected_root) return manifest;
  return make_error(Code::checkpoint_damaged, "the host's manifest does not hash to " + to_hex(expected_root));
}

Result<void> fetch_chunks(const Route& route, const wire::CheckpointRef& checkpoint, const std::vector<Chunk>& wanted,
                          Sink& sink, const os::Clock& clock, const Progress& progress, TransferStats& stats) {
  ParallelTransfer haul(route, clock, progress, stats);
  TRY(haul.tell());
  for (int round = 0; round < k_rounds_max; ++round) {
    TRY_ASSIGN(std::vector<Chunk> missing, sink.lacking(wanted));
    if (missing.empty()) return {};
    TRY(sink.make_room(missing));
    TRY(haul.run(std::move(missing),
                 [&](Conversation with, Codecs) { return Fetcher(std::move(with), checkpoint, haul, sink).run(); }));
    if (haul.lanes() == 1) return {};
  }
  return {};  // what may still be missing is found at the end
}

}  // namespace

Result<Pulled> pull_checkpoint(const Route& route, const wire::CheckpointRef& checkpoint, const Digest& expected_root,
                               std::uint64_t bytes_quota, store::ChunkStore& into, const os::Clock& clock,
                               const Progress& progress, const store::Tree* earlier, const PullGuard& guard) {
  TransferStats stats;
  Conversation asking{route.link, clock};
  asking.on_bytes = [&stats](std::size_t bytes) { stats.bytes_moved += bytes; };
  TRY_ASSIGN(const Bytes manifest, fetch_manifest(asking, checkpoint, expected_root));
  TRY_ASSIGN(store::Tree tree, store::parse_manifest(manifest, {bytes_quota, store::k_entries_max, true}));
  TRY(check_lengths(tree));
  const std::vector<Chunk> wanted = tree.unique_chunks();
  stats.chunks = wanted.size();
  for (const Chunk& chunk : wanted) stats.bytes += chunk.size;
  Sink sink(into, earlier == nullptr ? std::unordered_map<Digest, Digest>{} : store::earlier_chunks(tree, *earlier),
            guard);
  if (const auto fetched = fetch_chunks(route, checkpoint, wanted, sink, clock, progress, stats); !fetched) {
    // After a broken link, the received chunks are kept for the next attempt; from a host that lies, nothing more is.
    const Code code = fetched.error().code;
    if (code != Code::protocol_violation && code != Code::checkpoint_damaged && code != Code::no_space)
      static_cast<void>(into.seal());
    return fetched.error();
  }
  TRY(sink.finish(wanted, expected_root, manifest));
  return Pulled{std::move(tree), expected_root, stats};
}

}  // namespace gridctl::transfer
