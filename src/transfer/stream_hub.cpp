// SPDX-License-Identifier: Apache-2.0
#include "transfer/stream_hub.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "os/listener.hpp"
#include "os/ready.hpp"
#include "wire/messages.hpp"

namespace gridctl::transfer {

namespace {
constexpr std::size_t k_way_room = 128 * 1024;            // bytes ahead of a word that is in a hurry, at most
constexpr std::uint64_t k_growth_max = 64ull << 20;       // of all windows of a conversation together
constexpr std::uint64_t k_credit_max = 1ull << 40;        // more than this no honest peer grants
constexpr Duration k_beat = std::chrono::milliseconds{250};
constexpr std::size_t k_writes_per_turn = 8;               // then other streams get their turn

Error broken(const char* what) { return make_error(Code::protocol_violation, std::string("the peer ") + what); }
}  // namespace

StreamHub::StreamHub(os::Loop& loop, const os::Clock& clock, FrameWay way, Side side)
    : loop_(loop), clock_(clock), way_(std::move(way)), parity_(side == Side::dialler ? 1 : 0), heard_(clock.boot()) {
  timer_ = loop_.every(k_beat, [this] { keep_time(); });
}

StreamHub::Stream* StreamHub::find(std::uint32_t id) {
  const auto found = streams_.find(id);
  return found == streams_.end() ? nullptr : &found->second;
}

StreamHub::Stream& StreamHub::add(std::uint32_t id, StreamEnds ends, StreamEvents events) {
  Stream& stream = streams_[id];
  stream.ends = std::move(ends);
  stream.events = std::move(events);
  return stream;
}

std::uint32_t StreamHub::next_id() {
  do last_id_ = last_id_ == 0 ? 2 - parity_ : last_id_ + 2;
  while (streams_.contains(last_id_) || last_id_ == 0);
  return last_id_;
}

void StreamHub::send(wire::FrameKind kind, std::uint32_t id, std::string payload) {
  way_.send({kind, id, std::move(payload)});
}

std::uint32_t StreamHub::open(const wire::StreamOpen& request, StreamEnds ends, StreamEvents events) {
  const std::uint32_t id = next_id();
  add(id, std::move(ends), std::move(events));
  send(wire::FrameKind::request, id, wire::encode(request));
  attach_ends(id);
  return id;
}

std::uint32_t StreamHub::reserve(StreamEnds ends, StreamEvents events) {
  const std::uint32_t id = next_id();
  add(id, std::move(ends), std::move(events));
  attach_ends(id);
  return id;
}

void StreamHub::accept(std::uint32_t id, const wire::StreamAnswer& answer, StreamEnds ends, StreamEvents events) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;  // it was reset meanwhile
  stream->ends = std::move(ends);
  stream->events = std::move(events);
  send(wire::FrameKind::reply, id, wire::encode(answer));
  attach_ends(id);
}

bool StreamHub::attach(std::uint32_t id, StreamEnds ends, StreamEvents events) {
  if (id == 0 || id % 2 == parity_ || streams_.contains(id)) return false;
  add(id, std::move(ends), std::move(events));
  attach_ends(id);
  return true;
}

// Starts reading and writing; earlier data waits in the stream.
void StreamHub::attach_ends(std::uint32_t id) {
  Stream& stream = *find(id);
  stream.accepted = true;
  const int source = stream.ends.source.get(), sink = stream.ends.sink.get();
  const auto ready = [this, id](os::Interest now) {
    if (now.write) write_out(id);
    if (now.read) enqueue(id);
    follow(id);
    flow();
  };
  if (source >= 0) {
    stream.source_watch = loop_.watch(source, {}, ready);
    enqueue(id);
  } else {
    stream.source_over = true;
  }
  if (sink >= 0) stream.sink_watch = loop_.watch(sink, {}, ready);
  write_out(id);
  follow(id);
  settle(id);
  flow();
}

// Asks the loop for what the stream waits for.
void StreamHub::follow(std::uint32_t id) {
  Stream* const stream = find(id);
  if (stream == nullptr || !stream->accepted) return;
  const bool reads = !stream->source_over && !stream->queued && stream->credit > 0;
  const bool writes = !stream->waiting.empty() && !stream->sink_gone;
  if (stream->source_watch) loop_.change(stream->source_watch, {reads, writes && stream->ends.duplex});
  if (stream->sink_watch) loop_.change(stream->sink_watch, {false, writes});
}

void StreamHub::enqueue(std::uint32_t id) {
  Stream* const stream = find(id);
  if (stream == nullptr || stream->queued || stream->source_over || stream->credit == 0) return;
  stream->queued = true;
  ready_.push_back(id);
}

void StreamHub::flow() {
  while (!ready_.empty() && way_.queued() < k_way_room) {
    const std::uint32_t id = ready_.front();
    ready_.pop_front();
    send_some(id);
  }
}

void StreamHub::send_some(std::uint32_t id) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  stream->queued = false;
  if (stream->source_over || stream->credit == 0) return follow(id);
  std::array<std::byte, wire::k_stream_piece> buffer;
  const std::size_t wanted = std::min<std::uint64_t>(buffer.size(), stream->credit);
  const Result<os::Moved> read = os::read_now(stream->ends.source.get(), std::span(buffer).first(wanted));
  if (!read || read->closed) return end_source(id);  // of a terminal without programs reading is an error
  if (read->blocked) return follow(id);
  moved_ = true;
  stream->credit -= read->bytes;
  send(wire::FrameKind::data, id, std::string(as_text(ByteView{buffer}.first(read->bytes))));
  enqueue(id);
}

void StreamHub::end_source(std::uint32_t id) {
  Stream& stream = *find(id);
  stream.source_over = true;
  follow(id);
  if (stream.events.source_ended) return std::function(stream.events.source_ended)();
  finish(id, {});
}

void StreamHub::finish(std::uint32_t id, const wire::StreamEnd& end) {
  Stream* const stream = find(id);
  if (stream == nullptr || stream->sent_end) return;
  stream->sent_end = stream->source_over = true;
  send(wire::FrameKind::end, id, wire::encode(end));
  if (!stream->ends.duplex) {
    stream->source_watch.reset();
    stream->ends.source.reset();
  }
  follow(id);
  settle(id);
}

void StreamHub::write_out(std::uint32_t id) {
  Stream* const stream = find(id);
  if (stream == nullptr || !stream->accepted) return;
  const int sink = stream->ends.duplex ? stream->ends.source.get() : stream->ends.sink.get();
  std::size_t taken = 0;
  bool broke = false;
  for (std::size_t turn = 0; turn < k_writes_per_turn && taken < stream->waiting.size() && !stream->sink_gone; ++turn) {
    const auto moved = sink < 0 ? Result<os::Moved>(os::Moved{0, true, false})
                                : os::write_now(sink, as_bytes(std::string_view(stream->waiting).substr(taken)));
    if (moved && moved->blocked) break;
    broke = !moved || moved->closed;
    if (broke) stream->sink_gone = true;
    else taken += moved->bytes;
  }
  if (stream->sink_gone) taken = stream->waiting.size();  // nobody wants it any more
  if (taken > 0) {
    stream->waiting.erase(0, taken);
    const std::uint64_t before = stream->window.size();
    const std::uint64_t credit =
        stream->window.taken(taken, clock_.boot(), path_, windows_total_ + before <= k_growth_max);
    windows_total_ += stream->window.size() - before;
    wire::StreamNote grant;
    grant.credit = credit;
    if (credit > 0 && !stream->peer_end) note(id, grant);
  }
  if (broke && sink >= 0) {
    if (stream->events.sink_broken) return std::function(stream->events.sink_broken)();
    if (stream->ends.duplex && !stream->ends.terminal) {
      const Error gone = make_error(Code::host_unreachable, "the connection was closed on the other side");
      reset(id, gone);
      return;
    }
  }
  settle(id);
}

// Passes the peer's end on when everything that it sent is written, and forgets the stream when both directions have
// ended.
void StreamHub::settle(std::uint32_t id) {
  Stream* stream = find(id);
  if (stream == nullptr || !stream->accepted || !stream->peer_end || !stream->waiting.empty()) return;
  if (!std::exchange(stream->received, true)) {
    if (stream->ends.duplex && !stream->ends.terminal) os::end_sending(stream->ends.source.get());
    stream->sink_watch.reset();
    stream->ends.sink.reset();
    if (stream->events.received) std::function(stream->events.received)();
    stream = find(id);
    if (stream == nullptr) return;
    if (!stream->ends.source.valid() && !stream->events.source_ended) finish(id, {});
    stream = find(id);
  }
  if (stream != nullptr && stream->sent_end) close(id, wire::StreamEnd(*stream->peer_end));
}

void StreamHub::close(std::uint32_t id, const wire::StreamEnd& end) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  const auto closed = std::move(stream->events.closed);
  windows_total_ -= stream->window.size() - wire::k_window_first;
  // A program on a broken stream must not mistake it for a complete one.
  if (end.error && stream->ends.duplex && !stream->ends.terminal) os::break_when_closed(stream->ends.source.get());
  streams_.erase(id);
  if (closed) closed(end);
}

void StreamHub::reset(std::uint32_t id, const Error& why) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  stream->events.closed = nullptr;
  send(stream->accepted ? wire::FrameKind::end : wire::FrameKind::reply, id, wire::error_payload(why));
  close(id, wire::StreamEnd{why, {}, {}});
}

void StreamHub::note(std::uint32_t id, const wire::StreamNote& note) {
  send(wire::FrameKind::event, id, wire::encode(note));
}

void StreamHub::abandon(const Error& why) {
  while (!streams_.empty()) close(streams_.begin()->first, wire::StreamEnd{why, {}, {}});
}

Result<void> StreamHub::take(const wire::Frame& frame) {
  heard_ = clock_.boot();
  switch (frame.kind) {
    case wire::FrameKind::request: return take_request(frame);
    case wire::FrameKind::event: return take_note(frame);
    case wire::FrameKind::data: return take_data(frame);
    case wire::FrameKind::end: return take_end(frame);
    case wire::FrameKind::reply: break;
  }
  if (const std::optional<Error> error = wire::payload_error(frame.payload)) {
    close(frame.stream, wire::StreamEnd{*error, {}, {}});
    return {};
  }
  TRY_ASSIGN(const wire::StreamAnswer answer, wire::parse_stream_answer(frame.payload));
  Stream* const stream = find(frame.stream);
  if (stream != nullptr && stream->events.answered) std::function(stream->events.answered)(answer);
  return {};
}

Result<void> StreamHub::take_request(const wire::Frame& frame) {
  TRY_ASSIGN(const wire::StreamOpen request, wire::parse_stream_open(frame.payload));
  if (frame.stream == 0 || frame.stream % 2 == parity_ || streams_.contains(frame.stream))
    return broken("opened a stream with a number already in use");
  add(frame.stream, {}, {});
  if (!on_open) reset(frame.stream, make_error(Code::unsupported, "only the other side may open streams"));
  else if (streams_.size() > wire::k_streams_max)
    reset(frame.stream, make_error(Code::busy, "this conversation already has 2048 streams"));
  else on_open(frame.stream, request);
  return {};
}

Result<void> StreamHub::take_note(const wire::Frame& frame) {
  TRY_ASSIGN(const wire::StreamNote said, wire::parse_stream_note(frame.payload));
  if (frame.stream == 0) {
    wire::StreamNote answer;
    answer.pong = said.ping;
    if (said.ping > 0) note(0, answer);
    // Only the newest ping counts: it names the time when it left.
    if (said.pong > 0 && said.pong == static_cast<std::uint64_t>(pinged_.ns) && std::exchange(ping_out_, false))
      path_.measured(heard_ - pinged_, heard_);
    return {};
  }
  Stream* const stream = find(frame.stream);
  if (stream == nullptr) return {};  // it has ended here
  if (said.credit > k_credit_max || stream->credit > k_credit_max) return broken("granted too much credit");
  stream->credit += said.credit;
  const auto noted = stream->events.noted;
  if (said.credit > 0) {
    enqueue(frame.stream);
    follow(frame.stream);
    flow();
  }
  if (noted && (said.terminal || said.signal > 0)) noted(said);
  return {};
}

Result<void> StreamHub::take_data(const wire::Frame& frame) {
  Stream* const stream = find(frame.stream);
  if (stream == nullptr) return {};  // it has ended here
  if (stream->peer_end || !stream->window.came(frame.payload.size())) return broken("sent more than it was allowed");
  moved_ = true;
  stream->waiting += frame.payload;
  write_out(frame.stream);
  follow(frame.stream);
  return {};
}

Result<void> StreamHub::take_end(const wire::Frame& frame) {
  TRY_ASSIGN(const wire::StreamEnd end, wire::parse_stream_end(frame.payload));
  Stream* const stream = find(frame.stream);
  if (stream == nullptr) return {};
  if (end.error) {
    close(frame.stream, end);
    return {};
  }
  if (stream->peer_end) return broken("ended a stream twice");
  stream->peer_end = end;
  settle(frame.stream);
  return {};
}

void StreamHub::keep_time() {
  const BootTime now = clock_.boot();
  if (now - pinged_ < (moved_ && !ping_out_ ? k_beat : rare_beat_)) return;
  moved_ = false;
  ping_out_ = true;
  pinged_ = now;
  wire::StreamNote ping;
  ping.ping = static_cast<std::uint64_t>(now.ns);
  note(0, ping);
}

}  // namespace gridctl::transfer
