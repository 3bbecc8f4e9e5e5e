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
  return make_error(Code::protocol_violation, "the other side sends nothing but events");
}

}  // namespace

Result<void> Conversation::send(wire::FrameKind kind, std::uint32_t stream, std::string payload) {
  return link.send({kind, stream, std::move(payload)}, deadline());
}

Result<void> Conversation::send_data(std::uint32_t stream, ByteView content) {
  const std::uint64_t total = content.size();
  while (!content.empty()) {
    const ByteView part = content.first(std::min(content.size(), k_data_frame));
    TRY(send(wire::FrameKind::data, stream, std::string(as_text(part))));
    content = content.subspan(part.size());
  }
  return send(wire::FrameKind::end, stream, wire::encode(wire::EndRecord{total, std::nullopt}));
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

Result<Bytes> Conversation::data(std::uint32_t stream, std::uint64_t bytes_max) {
  Bytes content;
  // A bound for the whole, so that nobody holds us with one byte a minute.
  const BootTime over = deadline() + std::chrono::seconds{bytes_max / k_rate_min};
  while (true) {
    TRY_ASSIGN(const wire::Frame frame, next_frame(*this, std::min(deadline(), over)));
    if (frame.stream != stream) return unexpected(frame, stream);
    if (frame.kind == wire::FrameKind::data) {
      if (frame.payload.empty()) return make_error(Code::protocol_violation, "data frame without data");
      if (frame.payload.size() > bytes_max - content.size())
        return make_error(Code::protocol_violation,
                          "more data came than the " + std::to_string(bytes_max) + " bytes allowed");
      const ByteView part = as_bytes(frame.payload);
      content.insert(content.end(), part.begin(), part.end());
      continue;
    }
    if (frame.kind != wire::FrameKind::end) return unexpected(frame, stream);
    TRY_ASSIGN(wire::EndRecord end, wire::parse_end(frame.payload));
    if (end.error) return *std::move(end.error);
    if (end.bytes != content.size())
      return make_error(Code::protocol_violation, "end record does not agree with the data before it");
    return content;
  }
}

}  // namespace gridctl::transfer
