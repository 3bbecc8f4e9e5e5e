// SPDX-License-Identifier: Apache-2.0
// Implements steps that both directions share: data of one operation as frames, and the limits of bulk transfers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "transfer/codecs.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

namespace gridctl::transfer {

inline constexpr std::size_t k_data_frame = 256 * 1024;  // bytes; small enough to interleave, large enough to be cheap
inline constexpr std::size_t k_have_batch = 4096;        // digests in one "have", as the protocol allows
inline constexpr std::size_t k_get_batch = 1024;         // chunks of one "get",
inline constexpr std::uint64_t k_get_bytes = 8u << 20;   // and bytes: several windows of a connection
inline constexpr std::size_t k_gets_in_flight = 2;       // so that the next batch waits at the host already
inline constexpr std::size_t k_puts_in_flight = 128;     // replies outstanding; they fit into any socket's buffer
inline constexpr std::uint64_t k_put_bytes_in_flight = 32ull << 20;
inline constexpr std::uint64_t k_seal_period = 64ull << 20;  // bytes that a machine's sudden end may cost

struct TransferStats {
  std::uint64_t chunks = 0, chunks_sent = 0;  // in all, and those that the other side lacked
  std::uint64_t bytes = 0, bytes_sent = 0;    // of these chunks; the manifest is not counted
  std::uint64_t bytes_to_send = 0;            // of the chunks that the other side lacked when that was known
  std::uint64_t bytes_moved = 0;              // all data frames: encoded or plain, of broken connections, the manifest
};
// Called after each chunk that was moved or found to be there already; by several threads, one at a time. False stops
// the transfer (cancelled).
using Progress = std::function<bool(const TransferStats& done)>;

// Holds a link with a deadline for each step: this much silence means a broken link, however long the transfer takes.
struct Conversation {
  wire::Link& link;
  const os::Clock& clock;
  Duration step_max = std::chrono::seconds{60};
  std::function<void(std::size_t)> on_bytes = {};  // hears of each data frame's length, both ways

  [[nodiscard]] BootTime deadline() const { return clock.boot() + step_max; }
  [[nodiscard]] Result<void> send(wire::FrameKind kind, std::uint32_t stream, std::string payload);
  // Sends data frames and the end record.
  [[nodiscard]] Result<void> send_data(std::uint32_t stream, ByteView content, store::Encoding encoding = {});
  [[nodiscard]] Result<void> send_error_end(std::uint32_t stream, const Error& error);
  // Returns the payload of the next frame, which must be a reply to this stream; an error reply becomes that error.
  [[nodiscard]] Result<std::string> reply(std::uint32_t stream);
  // Receives data frames up to the end record; refuses more than `bytes_max`. An error in the end record becomes that
  // error.
  [[nodiscard]] Result<Parcel> parcel(std::uint32_t stream, std::uint64_t bytes_max);
  // Reads data where nothing may be encoded.
  [[nodiscard]] Result<Bytes> data(std::uint32_t stream, std::uint64_t bytes_max);
};

// Receives the data of one operation, frame by frame, to the end record.
class Inflow {
 public:
  // Refuses more than `bytes_max`. `with` must outlive it.
  Inflow(Conversation& with, std::uint32_t stream, std::uint64_t bytes_max);
  // Returns nullopt after the end record has arrived and agrees with the data before it. An error in it becomes that
  // error; after an error, each call returns it again.
  [[nodiscard]] Result<std::optional<std::string>> next();
  [[nodiscard]] bool has_ended() const { return ended_; }  // the link is free for what comes next
  [[nodiscard]] const wire::EndRecord& end() const { return end_; }

 private:
  [[nodiscard]] Result<std::optional<std::string>> receive();

  Conversation& with_;
  std::uint32_t stream_;
  std::uint64_t bytes_max_, came_ = 0;
  BootTime over_;
  wire::EndRecord end_;
  bool ended_ = false;
  std::optional<Error> failed_;
};

}  // namespace gridctl::transfer
