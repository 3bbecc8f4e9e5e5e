// SPDX-License-Identifier: Apache-2.0
#include "transfer/push.hpp"

#include <deque>
#include <span>
#include <utility>
#include <vector>

namespace gridctl::transfer {
namespace {

using store::Chunk;
using wire::FrameKind;

constexpr std::uint64_t k_seal_period = 256ull << 20;  // bytes; so much is sent again at most after a broken link

class Push {
 public:
  Push(const Conversation& with, store::ChunkReader& chunks, const Progress& progress)
      : with_(with), chunks_(chunks), progress_(progress) {}

  Result<TransferStats> run(const std::vector<Chunk>& wanted, const Chunk& root, ByteView manifest) {
    stats_.chunks = wanted.size();
    for (const Chunk& chunk : wanted) stats_.bytes += chunk.size;
    TRY_ASSIGN(const std::vector<Chunk> missing, ask(wanted));
    TRY(tell());
    for (const Chunk& chunk : missing) {
      TRY_ASSIGN(const Bytes content, chunks_.read(chunk.digest));
      TRY(put(chunk, content));
      stats_.chunks_sent += 1;
      stats_.bytes_sent += chunk.size;
      TRY(tell());
    }
    TRY(put(root, manifest));
    TRY(seal());
    TRY_ASSIGN(const std::vector<Chunk> lost, ask(missing.size() == wanted.size() ? std::vector<Chunk>{root} : wanted));
    if (lost.empty()) return stats_;
    Error error =
        make_error(Code::busy, "the host dropped " + std::to_string(lost.size()) + " chunks while they were sent");
    error.retry = Retry::same_host_later;
    return error;
  }

 private:
  Result<std::vector<Chunk>> ask(const std::vector<Chunk>& chunks) {
    std::vector<Chunk> missing;
    for (std::size_t begin = 0; begin < chunks.size(); begin += k_have_batch) {
      const auto batch = std::span(chunks).subspan(begin, std::min(k_have_batch, chunks.size() - begin));
      wire::HaveRequest request;
      for (const Chunk& chunk : batch) request.chunks.push_back(chunk.digest);
      const std::uint32_t stream = next_stream_++;
      TRY(with_.send(FrameKind::request, stream, wire::encode(request)));
      TRY_ASSIGN(const std::string payload, with_.reply(stream));
      TRY_ASSIGN(const wire::HaveReply reply, wire::parse_have_reply(payload));
      for (const std::uint32_t index : reply.missing) {
        if (index >= batch.size())
          return make_error(Code::protocol_violation, "host misses a chunk it was not asked for");
        missing.push_back(batch[index]);
      }
    }
    return missing;
  }

  Result<void> put(const Chunk& chunk, ByteView content) {
    while (in_flight_.size() >= k_puts_in_flight ||
           (!in_flight_.empty() && bytes_in_flight_ + chunk.size > k_put_bytes_in_flight))
      TRY(await_one());
    const std::uint32_t stream = next_stream_++;
    TRY(with_.send(FrameKind::request, stream, wire::encode(wire::PutRequest{chunk.digest, chunk.size})));
    TRY(with_.send_data(stream, content));
    in_flight_.emplace_back(stream, chunk.size);
    bytes_in_flight_ += chunk.size;
    unsealed_ += chunk.size;
    return unsealed_ >= k_seal_period ? seal() : Result<void>();
  }

  Result<void> await_one() {
    TRY(with_.reply(in_flight_.front().first));
    bytes_in_flight_ -= in_flight_.front().second;
    in_flight_.pop_front();
    return {};
  }

  Result<void> seal() {
    while (!in_flight_.empty()) TRY(await_one());
    const std::uint32_t stream = next_stream_++;
    TRY(with_.send(FrameKind::request, stream, wire::encode_plain("seal")));
    TRY(with_.reply(stream));
    unsealed_ = 0;
    return {};
  }

  Result<void> tell() {
    if (!progress_ || progress_(stats_)) return {};
    return make_error(Code::cancelled, "transfer was stopped");
  }

  Conversation with_;
  store::ChunkReader& chunks_;
  const Progress& progress_;
  TransferStats stats_;
  std::deque<std::pair<std::uint32_t, std::uint32_t>> in_flight_;  // stream, bytes
  std::uint64_t bytes_in_flight_ = 0, unsealed_ = 0;
  std::uint32_t next_stream_ = 1;
};

}  // namespace

Result<TransferStats> push_tree(wire::Link& link, const store::Tree& tree, ByteView manifest,
                                store::ChunkReader& chunks, const os::Clock& clock, const Progress& progress) {
  if (manifest.empty() || manifest.size() > store::k_manifest_max)
    return make_error(Code::no_space, "tree is too large: its manifest has more than 64 MiB");
  const Chunk root{store::root_of(manifest), static_cast<std::uint32_t>(manifest.size())};
  return Push({link, clock}, chunks, progress).run(tree.unique_chunks(), root, manifest);
}

}  // namespace gridctl::transfer
