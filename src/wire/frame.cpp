// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.hpp"

#include "base/check.hpp"
#include "base/text.hpp"

namespace gridctl::wire {

namespace {
constexpr std::size_t k_crc_at = 12;              // offset of the CRC in the header
constexpr std::size_t k_noise_shown = 400;        // bytes of login noise quoted in an error
constexpr std::size_t k_compact_bytes = 1 << 16;  // taken bytes that are worth moving the rest for
}  // namespace

std::string encode(const Frame& frame) {
  GRIDCTL_CHECK(frame.payload.size() <= k_frame_max);
  std::string out;
  out.reserve(k_header_bytes + frame.payload.size());
  out += "GF";
  out += static_cast<char>(frame.kind);
  out += '\0';
  append_number(out, frame.stream);
  append_number(out, static_cast<std::uint32_t>(frame.payload.size()));
  append_number(out, crc32(frame.payload, crc32(out)));
  out += frame.payload;
  return out;
}

void Decoder::feed(ByteView bytes) {
  if (broken_) return;
  if (taken_ == buffer_.size() || taken_ >= k_compact_bytes) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  buffer_ += as_text(bytes);
}

Result<std::optional<Frame>> Decoder::next() {
  if (broken_) return *broken_;
  const auto attempt = [this]() -> Result<std::optional<Frame>> {
    if (awaiting_preamble_) {
      TRY_ASSIGN(const bool found, skip_noise());
      if (!found) return std::optional<Frame>{};
    }
    return take_frame();
  };
  Result<std::optional<Frame>> frame = attempt();
  if (!frame) {
    broken_ = frame.error();
    buffer_.clear();
    taken_ = 0;
  }
  return frame;
}

Result<bool> Decoder::skip_noise() {
  const std::string_view seen = std::string_view(buffer_).substr(taken_);
  const std::size_t at = seen.find(k_preamble);
  if (at <= k_noise_max) {
    taken_ += at + k_preamble.size();
    awaiting_preamble_ = false;
    return true;
  }
  if (seen.size() < k_noise_max + k_preamble.size()) return false;
  return make_error(Code::protocol_violation, "the agent did not answer; the host printed instead: " +
                                                  sanitize(trim(seen.substr(0, k_noise_shown))) + "…");
}

Result<std::optional<Frame>> Decoder::take_frame() {
  const std::string_view seen = std::string_view(buffer_).substr(taken_);
  if (seen.substr(0, 2) != std::string_view("GF").substr(0, seen.size()))
    return make_error(Code::protocol_violation, "the peer sent bytes that do not start a frame");
  if (seen.size() < k_header_bytes) return std::optional<Frame>{};
  const auto kind = static_cast<std::uint8_t>(seen[2]);
  const std::uint32_t length = number_at(seen, 8);
  if (kind < static_cast<std::uint8_t>(FrameKind::request) || kind > static_cast<std::uint8_t>(FrameKind::event))
    return make_error(Code::protocol_violation, "the peer sent a frame of unknown kind " + std::to_string(kind));
  if (seen[3] != 0) return make_error(Code::protocol_violation, "the peer sent a frame with unknown flags");
  if (length > k_frame_max)
    return make_error(Code::protocol_violation, "the peer sent a frame of " + std::to_string(length) + " bytes");
  if (seen.size() < k_header_bytes + length) return std::optional<Frame>{};
  const std::string_view payload = seen.substr(k_header_bytes, length);
  if (crc32(payload, crc32(seen.substr(0, k_crc_at))) != number_at(seen, k_crc_at))
    return make_error(Code::protocol_violation, "the peer sent a frame with a wrong checksum");
  Frame frame{static_cast<FrameKind>(kind), number_at(seen, 4), std::string(payload)};
  taken_ += k_header_bytes + length;
  return std::optional<Frame>{std::move(frame)};
}

}  // namespace gridctl::wire
