// SPDX-License-Identifier: Apache-2.0
// Runs one side of a conversation of streams: joins each stream with descriptors of this machine. Both sides are alike;
// only the meaning of an open differs. Bytes are read from a descriptor only if the peer has granted credit and the
// connection has room, so a slow reader delays only its own stream. For the loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/result.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/loop.hpp"
#include "wire/frame.hpp"
#include "wire/stream.hpp"
#include "wire/window.hpp"

namespace gridctl::transfer {

// Represents the connection for the hub. `queued`: bytes that were sent and have not left yet.
struct FrameWay {
  std::function<void(const wire::Frame&)> send;
  std::function<std::size_t()> queued;
};

// Holds the descriptors of one stream. Without a source, nothing is sent; without a sink, nothing is expected.
struct StreamEnds {
  os::Fd source{}, sink{};
  bool duplex = false;    // `source` is the sink, too: a socket or a terminal
  bool terminal = false;  // has no end of input that could be passed on
};

// Each may be empty. A callback may end streams, and open others.
struct StreamEvents {
  std::function<void(const wire::StreamAnswer&)> answered{};  // the peer carried out the open
  std::function<void()> source_ended{};                       // instead of sending the end at once
  std::function<void()> received{};                           // all bytes of the peer were written to the sink
  std::function<void()> sink_broken{};                        // instead of dropping what the peer still sends
  std::function<void(const wire::StreamNote&)> noted{};
  std::function<void(const wire::StreamEnd&)> closed{};  // once, as the last; not after reset() on this side
};

class StreamHub {
 public:
  enum class Side : std::uint8_t { dialler, answerer };  // by which numbers of streams are odd, or even
  StreamHub(os::Loop& loop, const os::Clock& clock, FrameWay way, Side side);
  StreamHub(const StreamHub&) = delete;
  StreamHub& operator=(const StreamHub&) = delete;

  // Asks the peer for a stream. Its first bytes follow at once.
  std::uint32_t open(const wire::StreamOpen& request, StreamEnds ends, StreamEvents events);
  // Reserves a stream that belongs to another one (standard error), which is opened afterwards and names it.
  std::uint32_t reserve(StreamEnds ends, StreamEvents events);

  // Called when the peer asks for a stream: answer with accept or reset, at once or later.
  std::function<void(std::uint32_t id, const wire::StreamOpen& request)> on_open;
  void accept(std::uint32_t id, const wire::StreamAnswer& answer, StreamEnds ends, StreamEvents events);
  // Works like reserve(), on the peer's side. Returns false if the number is not free.
  [[nodiscard]] bool attach(std::uint32_t id, StreamEnds ends, StreamEvents events);

  // Sends nothing more on the stream; received data is still written.
  void finish(std::uint32_t id, const wire::StreamEnd& end);
  // Ends both directions, and tells the peer why.
  void reset(std::uint32_t id, const Error& why);
  void note(std::uint32_t id, const wire::StreamNote& note);
  // The connection is gone: closes all streams with this error.
  void abandon(const Error& why);

  // Handles a received frame. An error means that the peer breaks the protocol: drop the connection.
  [[nodiscard]] Result<void> take(const wire::Frame& frame);
  // Call it when the connection may have room again.
  void flow();

  [[nodiscard]] std::size_t count() const { return streams_.size(); }
  [[nodiscard]] bool has(std::uint32_t id) const { return streams_.contains(id); }
  // Returns true if everything readable from its source was sent, and the peer would take more.
  [[nodiscard]] bool is_idle(std::uint32_t id) const {
    const auto found = streams_.find(id);
    return found == streams_.end() || (!found->second.queued && found->second.credit > 0);
  }
  [[nodiscard]] const wire::RoundTrip& path() const { return path_; }
  // Asks the peer for a sign of life at least this often, even while nothing moves.
  void ask_every(Duration period) { rare_beat_ = period; }
  // Returns the time since the peer was last heard.
  [[nodiscard]] Duration silence() const { return clock_.boot() - heard_; }

 private:
  struct Stream {
    StreamEnds ends{};
    StreamEvents events{};
    os::Loop::Watch source_watch{}, sink_watch{};
    std::uint64_t credit = wire::k_window_first;  // bytes that the peer lets us send
    wire::ReceiveWindow window{};
    std::string waiting{};  // came, and the sink has not taken it yet
    std::optional<wire::StreamEnd> peer_end{};
    bool accepted = false, queued = false, source_over = false, sink_gone = false, sent_end = false, received = false;
  };

  Stream* find(std::uint32_t id);
  Stream& add(std::uint32_t id, StreamEnds ends, StreamEvents events);
  std::uint32_t next_id();
  void attach_ends(std::uint32_t id);
  void follow(std::uint32_t id);
  void enqueue(std::uint32_t id);
  void send_some(std::uint32_t id);
  void end_source(std::uint32_t id);
  void write_out(std::uint32_t id);
  void settle(std::uint32_t id);
  void close(std::uint32_t id, const wire::StreamEnd& end);
  void send(wire::FrameKind kind, std::uint32_t id, std::string payload);
  void keep_time();
  Result<void> take_request(const wire::Frame& frame);
  Result<void> take_note(const wire::Frame& frame);
  Result<void> take_data(const wire::Frame& frame);
  Result<void> take_end(const wire::Frame& frame);

  os::Loop& loop_;
  const os::Clock& clock_;
  const FrameWay way_;
  const std::uint32_t parity_;
  std::uint32_t last_id_ = 0;
  std::map<std::uint32_t, Stream> streams_;
  std::deque<std::uint32_t> ready_;  // have bytes to send, and credit; in turn
  std::uint64_t windows_total_ = 0;  // by which they are larger than the first
  wire::RoundTrip path_;
  BootTime heard_, pinged_{};
  bool moved_ = false;     // data came or went since the last ping
  bool ping_out_ = false;  // and was not answered yet
  Duration rare_beat_ = std::chrono::seconds{5};  // while nothing moves
  os::Loop::Timer timer_;
};

}  // namespace gridctl::transfer
