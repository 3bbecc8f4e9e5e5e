// SPDX-License-Identifier: Apache-2.0
#include "transfer/push.hpp"

#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "os/mutex.hpp"
#include "transfer/feed.hpp"
#include "wire/own.hpp"

namespace gridctl::transfer {
namespace {

using store::Chunk;
using wire::FrameKind;

// Represents one connection to the host's cache.
class Sender {
 public:
  explicit Sender(Conversation with, JobId job = {}) : with_(std::move(with)), job_(std::move(job)) {}

  [[nodiscard]] const wire::Link& link() const { return with_.link; }

  Result<std::vector<Chunk>> lacking(const std::vector<Chunk>& chunks) {
    while (!in_flight_.empty()) TRY(await_one());
    std::vector<Chunk> missing;
    for (std::size_t begin = 0; begin < chunks.size(); begin += k_have_batch) {
      const auto batch = std::span(chunks).subspan(begin, std::min(k_have_batch, chunks.size() - begin));
      wire::HaveForJob request;
      request.job = job_;
      for (const Chunk& chunk : batch) request.chunks.push_back(chunk.digest);
      const std::uint32_t stream = next_stream_++;
      TRY(with_.send(FrameKind::request, stream, wire::encode(request)));
      TRY_ASSIGN(const std::string payload, with_.reply(stream));
      TRY_ASSIGN(const wire::HaveReply reply, wire::parse_have_reply(payload));
      for (const std::uint32_t index : reply.missing) {
        if (index >= batch.size())
          return make_error(Code::protocol_violation, "the host reports a missing chunk that it was not asked for");
        missing.push_back(batch[index]);
      }
    }
    return missing;
  }

  Result<void> put(const Chunk& chunk, ByteView bytes, store::Encoding encoding = {}) {
    while (in_flight_.size() >= k_puts_in_flight ||
           (!in_flight_.empty() && bytes_in_flight_ + chunk.size > k_put_bytes_in_flight))
      TRY(await_one());
    const std::uint32_t stream = next_stream_++;
    TRY(with_.send(FrameKind::request, stream, wire::encode(wire::PutRequest{chunk.digest, chunk.size})));
    TRY(with_.send_data(stream, bytes, encoding));
    await_later(stream, chunk.size);
    unsealed_ += chunk.size;
    return unsealed_ >= k_seal_period ? ask_to_seal() : Result<void>();
  }

  // Makes durable everything that was put.
  Result<void> seal() {
    TRY(ask_to_seal());
    while (!in_flight_.empty()) TRY(await_one());
    return {};
  }

 private:
  Result<void> ask_to_seal() {
    const std::uint32_t stream = next_stream_++;
    TRY(with_.send(FrameKind::request, stream, wire::encode_plain("seal")));
    await_later(stream, 0);
    unsealed_ = 0;
    return {};
  }

  void await_later(std::uint32_t stream, std::uint32_t bytes) {
    in_flight_.emplace_back(stream, bytes);
    bytes_in_flight_ += bytes;
  }

  Result<void> await_one() {
    TRY(with_.reply(in_flight_.front().first));
    bytes_in_flight_ -= in_flight_.front().second;
    in_flight_.pop_front();
    return {};
  }

  Conversation with_;
  JobId job_;
  std::deque<std::pair<std::uint32_t, std::uint32_t>> in_flight_;  // stream, bytes
  std::uint64_t bytes_in_flight_ = 0, unsealed_ = 0;
  std::uint32_t next_stream_ = 1;
};

class Push {
 public:
  Push(const Route& route, store::ChunkReader& chunks, const os::Clock& clock, const Progress& progress,
       const JobId& job)
      : chunks_(chunks),
        clock_(clock),
        haul_(route, clock, progress, stats_),
        first_link_(route.link),
        first_(haul_.conversation(route.link), job) {}

  Result<TransferStats> run(std::vector<Chunk> wanted, const Chunk& root, ByteView manifest) {
    stats_.chunks = wanted.size();
    for (const Chunk& chunk : wanted) stats_.bytes += chunk.size;
    TRY(send_missing(wanted));
    TRY(first_.put(root, manifest));
    TRY(first_.seal());
    wanted.push_back(root);
    TRY_ASSIGN(const std::vector<Chunk> lost, first_.lacking(wanted));
    if (lost.empty()) return stats_;
    Error error =
        make_error(Code::busy, "the host dropped " + std::to_string(lost.size()) + " chunks while they were sent");
    error.retry = Retry::same_host_later;
    return error;
  }

 private:
  Result<void> send_missing(const std::vector<Chunk>& wanted) {
    for (int round = 0; round < k_rounds_max; ++round) {
      TRY_ASSIGN(std::vector<Chunk> missing, first_.lacking(wanted));
      TRY(haul_.tell());
      if (missing.empty()) return {};
      TRY(haul_.run(std::move(missing),
                    [this](Conversation with, Codecs codecs) { return lane(std::move(with), codecs); }));
      if (haul_.lanes() == 1) return {};
    }
    return {};  // what may still be missing is found at the end
  }

  // The first connection continues with the manifest, without waiting in between.
  Result<void> lane(Conversation with, Codecs codecs) {
    if (&with.link == &first_link_) return send_some(first_, codecs);
    Sender sender(std::move(with));
    TRY(send_some(sender, codecs));
    return sender.seal();
  }

  Result<void> send_some(Sender& sender, Codecs codecs) {
    EncodingWorth worth;
    const auto next = [this, &sender]() -> std::optional<Chunk> {
      const std::vector<Chunk> one = haul_.take(sender.link(), 0, 1);
      return one.empty() ? std::nullopt : std::optional(one.front());
    };
    const auto read = [this](const Digest& digest) {
      const os::MutexLock lock(reading_);
      return chunks_.read(digest);
    };
    Feed feed({next, read}, codecs, worth, clock_, false);
    while (const std::optional<Feed::Item> item = feed.take()) {
      if (!item->parcel) return item->parcel.error();
      const BootTime began = clock_.boot();
      TRY(sender.put(item->chunk, item->parcel->bytes, item->parcel->encoding));
      worth.sent(item->parcel->bytes.size(), clock_.boot() - began);
      TRY(haul_.done(item->chunk));
    }
    return {};
  }

  os::Mutex reading_;
  store::ChunkReader& chunks_ GRIDCTL_GUARDED_BY(reading_);
  const os::Clock& clock_;
  TransferStats stats_;
  ParallelTransfer haul_;
  const wire::Link& first_link_;
  Sender first_;
};

}  // namespace

Result<TransferStats> push_tree(const Route& route, const store::Tree& tree, ByteView manifest,
                                store::ChunkReader& chunks, const os::Clock& clock, const Progress& progress,
                                const JobId& job) {
  if (manifest.empty() || manifest.size() > store::k_manifest_max)
    return make_error(Code::no_space, "tree is too large: its manifest has more than 64 MiB");
  const Chunk root{store::root_of(manifest), static_cast<std::uint32_t>(manifest.size())};
  return Push(route, chunks, clock, progress, job).run(tree.unique_chunks(), root, manifest);
}

}  // namespace gridctl::transfer
