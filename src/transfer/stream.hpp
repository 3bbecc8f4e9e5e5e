// SPDX-License-Identifier: Apache-2.0
// Steps that both directions share: data of one operation as frames, and the limits of bulk transfers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::transfer {

inline constexpr std::size_t k_data_frame = 256 * 1024;  // bytes; small enough to interleave, large enough to be cheap
inline constexpr std::size_t k_have_batch = 4096;        // digests in one "have", as the protocol allows
inline constexpr std::size_t k_get_batch = 32;           // chunks of one "get": at most 128 MiB
inline constexpr std::size_t k_gets_in_flight = 2;       // so that the next batch waits at the host already
inline constexpr std::size_t k_puts_in_flight = 128;     // replies outstanding; they fit into any socket's buffer
inline constexpr std::uint64_t k_put_bytes_in_flight = 32ull << 20;

struct TransferStats {
  std::uint64_t chunks = 0, chunks_sent = 0;  // in all, and those that the other side lacked
  std::uint64_t bytes = 0, bytes_sent = 0;    // of these chunks; the manifest is not counted
};
// Called after each chunk that was moved or found to be there already. False stops the transfer (cancelled).
using Progress = std::function<bool(const TransferStats& done)>;

// A link with a deadline for each step: so much silence is a broken link, however long the whole takes.
struct Conversation {
  wire::Link& link;
  const os::Clock& clock;
  Duration step_max = std::chrono::seconds{60};

  [[nodiscard]] BootTime deadline() const { return clock.boot() + step_max; }
  [[nodiscard]] Result<void> send(wire::FrameKind kind, std::uint32_t stream, std::string payload);
  // Data frames and the end record.
  [[nodiscard]] Result<void> send_data(std::uint32_t stream, ByteView content);
  [[nodiscard]] Result<void> send_error_end(std::uint32_t stream, const Error& error);
  // The payload of the next frame, which must be a reply to this stream; an error reply becomes that error.
  [[nodiscard]] Result<std::string> reply(std::uint32_t stream);
  // Data frames up to the end record; refuses more than `bytes_max`. An error in the end record becomes that error.
  [[nodiscard]] Result<Bytes> data(std::uint32_t stream, std::uint64_t bytes_max);
};

}  // namespace gridctl::transfer
