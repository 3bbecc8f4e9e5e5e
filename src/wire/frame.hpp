// SPDX-License-Identifier: Apache-2.0
// Defines the frames of the controller <-> agent protocol, gridctl-agent(7). Pure encoding; no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"

namespace gridctl::wire {

// Starts the agent's first line on stdout; anything that a login shell prints before it is noise.
inline constexpr std::string_view k_preamble = "\nGRIDCTL-AGENT/1\n";
inline constexpr std::size_t k_noise_max = 128 * 1024;  // bytes of login noise tolerated before the preamble
inline constexpr std::size_t k_frame_max = 1024 * 1024;  // payload bytes of one frame
inline constexpr std::size_t k_header_bytes = 16;
inline constexpr std::size_t k_json_depth_max = 32;

enum class FrameKind : std::uint8_t {
  request = 1,  // JSON; starts an operation named by its stream number
  reply = 2,    // JSON; ends an operation that has no data, or precedes its data
  data = 3,     // bytes belonging to the operation of the same stream number
  end = 4,  // JSON {"ok":bool,"bytes":n,"sha256":…,"error":{…}}: closes a data stream; success is this, nothing else
  event = 5,  // JSON, stream 0: unsolicited observation of the agent
};

struct Frame {
  FrameKind kind = FrameKind::request;
  std::uint32_t stream = 0;
  std::string payload;
  bool operator==(const Frame&) const = default;
};

// Encodes a frame. Header: "GF" magic, kind (1 byte), flags (1 byte, zero), stream (4, big endian), payload length (4,
// BE), CRC-32 of these twelve bytes and the payload (4, BE); then the payload.
[[nodiscard]] std::string encode(const Frame& frame);  // REQUIRES: payload <= k_frame_max

// Decodes incrementally: feed bytes as they arrive, take complete frames.
class Decoder {
 public:
  // With `await_preamble`, skips login noise first (at most k_noise_max bytes).
  explicit Decoder(bool await_preamble) : awaiting_preamble_(await_preamble) {}
  // The caller stops reading while buffered() exceeds its limit; one frame needs k_frame_max and the header.
  void feed(ByteView bytes);
  // Returns a frame, nullopt if more bytes are needed, or protocol_violation (then the connection must be dropped). If
  // the preamble never arrives, the error quotes the noise. After an error, every call returns it again.
  [[nodiscard]] Result<std::optional<Frame>> next();
  [[nodiscard]] std::size_t buffered() const { return buffer_.size() - taken_; }

 private:
  Result<bool> skip_noise();
  Result<std::optional<Frame>> take_frame();

  std::string buffer_;
  std::size_t taken_ = 0;
  bool awaiting_preamble_;
  std::optional<Error> broken_;
};

// Computes the CRC-32 of zlib and Ethernet; `before` is the value for the bytes before these.
[[nodiscard]] std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

// Represents a frame link: one connection. Implementations: over an SSH channel (control), over two descriptors (agent,
// tests). Deadlines are BootTimes of this machine. One thread at a time per direction.
class Link {
 public:
  virtual ~Link() = default;
  virtual Result<void> send(const Frame& frame, BootTime deadline) = 0;
  virtual Result<Frame> receive(BootTime deadline) = 0;  // timed_out, host_unreachable at end of stream
};

}  // namespace gridctl::wire
