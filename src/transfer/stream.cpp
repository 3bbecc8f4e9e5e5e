// SPDX-License-Identifier: Apache-2.0
#include "transfer/stream.hpp"

#include <algorithm>
#include <utility>

namespace gridctl::transfer {
namespace {

constexpr int k_events_max = 10'000;            // between two frames that are waited for
constexpr std::uint64_t k_rate_min = 4 * 1024;  // bytes per second; slower than half of 64 kbit/s is not transferring

Error unexpected(const wire::Frame& frame, std::uint32_t stream) {
  return make_error(Code::protocol_violation, "frame of kind " + std::to_string(static_cast<int>(frame.kind)) +
                                                  " on stream " + std::to_string(frame.stream) + " came while stream " +
                                                  std::to_string(stream) + " was waited for");
}

// Events may come between any two frames; bulk transfers do not need them.
Result<wire::Frame> next_frame(Conversation& with, BootTime deadline) {
  for (int events = 0; events < k_events_max; ++events) {
    TRY_ASSIGN(wire::Frame frame, with.link.receive(deadline));
    if (frame.kind != wire::FrameKind::event) return frame;
  }
  return make_error(Code::protocol_violation, "the other side sends only events");
}

}  // namespace

Result<void> Conversation::send(wire::FrameKind kind, std::uint32_t stream, std::string payload) {
  return link.send({kind, stream, std::move(payload)}, deadline());
}

Result<void> Conversation::send_data(std::uint32_t stream, ByteView content, store::Encoding encoding) {
  const wire::EndRecord end{content.size(), std::nullopt, static_cast<std::uint8_t>(encoding.codec),
                            encoding.parameter};
  while (!content.empty()) {
    const ByteView part = content.first(std::min(content.size(), k_data_frame));
    TRY(send(wire::FrameKind::data, stream, std::string(as_text(part))));
    if (on_bytes) on_bytes(part.size());
    content = content.subspan(part.size());
  }
  return send(wire::FrameKind::end, stream, wire::encode(end));
}

Result<void> Conversation::send_error_end(std::uint32_t stream, const Error& error) {
  return send(wire::FrameKind::end, stream, wire::encode(wire::EndRecord{0, error}));
}

Result<std::string> Conversation::reply(std::uint32_t stream) {
  TRY_ASSIGN(wire::Frame frame, next_frame(*this, deadline()));
  if (frame.stream != stream || frame.kind != wire::FrameKind::reply) return unexpected(frame, stream);
  if (auto error = wire::payload_error(frame.payload)) return *std::move(error);
  return std::move(frame.payload);
}

// Limits the complete transfer, so that a peer cannot hold us with one byte a minute.
Inflow::Inflow(Conversation& with, std::uint32_t stream, std::uint64_t bytes_max)
    : with_(with),
      stream_(stream),
      bytes_max_(bytes_max),
      over_(with.deadline() + std::chrono::seconds{bytes_max / k_rate_min}) {}

Result<std::optional<std::string>> Inflow::next() {
  if (failed_) return *failed_;
  if (ended_) return std::optional<std::string>();
  Result<std::optional<std::string>> piece = receive();
  if (!piece) failed_ = piece.error();
  return piece;
}

Result<std::optional<std::string>> Inflow::receive() {
  TRY_ASSIGN(wire::Frame frame, next_frame(with_, std::min(with_.deadline(), over_)));
  if (frame.stream != stream_) return unexpected(frame, stream_);
  if (frame.kind == wire::FrameKind::data) {
    if (frame.payload.empty()) return make_error(Code::protocol_violation, "data frame without data");
    if (frame.payload.size() > bytes_max_ - came_)
      return make_error(Code::protocol_violation,
                        "received more data than the " + std::to_string(bytes_max_) + " bytes allowed");
    came_ += frame.payload.size();
    if (with_.on_bytes) with_.on_bytes(frame.payload.size());
    return std::optional(std::move(frame.payload));
  }
  if (frame.kind != wire::FrameKind::end) return unexpected(frame, stream_);
  TRY_ASSIGN(end_, wire::parse_end(frame.payload));
  ended_ = true;
  if (end_.error) return *end_.error;
  if (end_.bytes != came_)
    return make_error(Code::protocol_violation, "end record does not agree with the data before it");
  return std::optional<std::string>();
}

Result<Parcel> Conversation::parcel(std::uint32_t stream, std::uint64_t bytes_max) {
  Inflow inflow(*this, stream, bytes_max);
  Bytes content;
  for (;;) {
    TRY_ASSIGN(const std::optional<std::string> piece, inflow.next());
    if (!piece) break;
    const ByteView part = as_bytes(*piece);
    content.insert(content.end(), part.begin(), part.end());
  }
  const wire::EndRecord& end = inflow.end();
  return Parcel{std::move(content), {static_cast<store::Codec>(end.codec), end.codec_parameter}};
}

Result<Bytes> Conversation::data(std::uint32_t stream, std::uint64_t bytes_max) {
  TRY_ASSIGN(Parcel received, parcel(stream, bytes_max));
  const std::size_t size = received.bytes.size();
  return unpack(std::move(received), size, Codecs{});
}

}  // namespace gridctl::transfer
