// SPDX-License-Identifier: Apache-2.0
#include "control/agent_link.hpp"

#include <array>
#include <utility>

#include "base/text.hpp"
#include "os/net.hpp"

namespace gridctl::control {

namespace {
constexpr std::size_t k_read_bytes = 64 * 1024;
constexpr std::size_t k_turn_bytes = 512 * 1024;         // per turn of the loop: one talkative host must not starve others
constexpr std::size_t k_output_max = 4u << 20;           // waiting for a peer that takes nothing
constexpr Duration k_keepalive = std::chrono::seconds{15};  // below the 60 s after which home routers forget

Error closed_error(const ssh::Channel& channel) {
  std::string text = "the agent on " + channel.peer() + " closed the connection";
  const std::string last = sanitize(std::string(trim(channel.stderr_tail())), 300);
  if (!last.empty()) text += ": " + last;
  return make_error(Code::host_unreachable, text);
}
}  // namespace

BlockingLink::BlockingLink(std::unique_ptr<ssh::Channel> channel, wire::Decoder decoder, os::Clock& clock)
    : channel_(std::move(channel)), decoder_(std::move(decoder)), clock_(clock) {}

Error BlockingLink::closed() const { return closed_error(*channel_); }

Result<void> BlockingLink::wait(bool output_pending, BootTime deadline) {
  std::vector<os::Poll> polls;
  for (const ssh::Watched& watched : channel_->wants(output_pending)) polls.push_back({watched.fd, watched.interest, {}});
  TRY_ASSIGN(const bool ready, os::wait_any(polls, deadline, clock_));
  if (!ready) return make_error(Code::timed_out, "no answer from " + channel_->peer() + " in time");
  return {};
}

Result<std::size_t> BlockingLink::receive_bytes(std::span<std::byte> into, BootTime deadline) {
  for (;;) {
    TRY_ASSIGN(const std::optional<std::size_t> count, channel_->read(into));
    if (count) return *count;
    TRY(wait(!channel_->flushed(), deadline));
  }
}

Result<void> BlockingLink::send_bytes(ByteView bytes, BootTime deadline) {
  std::size_t sent = 0;
  while (sent < bytes.size() || !channel_->flushed()) {
    TRY_ASSIGN(const std::optional<std::size_t> count, channel_->write(bytes.subspan(sent)));
    sent += count.value_or(0);
    if (count && *count > 0) continue;
    // What the peer says meanwhile must be taken in, or both sides wait for ever.
    std::array<std::byte, 16 * 1024> piece;
    TRY_ASSIGN(const std::optional<std::size_t> got, channel_->read(piece));
    if (got && *got == 0) return closed();
    if (got) {
      decoder_.feed(ByteView{piece.data(), *got});
      continue;
    }
    if (sent == bytes.size() && channel_->flushed()) break;
    TRY(wait(true, deadline));
  }
  return {};
}

Result<void> BlockingLink::send(const wire::Frame& frame, BootTime deadline) {
  return send_bytes(as_bytes(wire::encode(frame)), deadline);
}

Result<wire::Frame> BlockingLink::receive(BootTime deadline) {
  std::vector<std::byte> piece(k_read_bytes);
  for (;;) {
    TRY_ASSIGN(std::optional<wire::Frame> frame, decoder_.next());
    if (frame) return std::move(*frame);
    TRY_ASSIGN(const std::size_t count, receive_bytes(piece, deadline));
    if (count == 0) return closed();
    decoder_.feed(ByteView{piece.data(), count});
  }
}

AgentSession BlockingLink::release(wire::AgentHello hello) && {
  return {std::move(channel_), std::move(decoder_), std::move(hello)};
}

LoopLink::LoopLink(os::Loop& loop, os::Clock& clock, AgentSession session)
    : loop_(loop), channel_(std::move(session.channel)), decoder_(std::move(session.decoder)) {
  keepalive_ = loop_.every(k_keepalive, [this, &clock] { channel_->keepalive(clock.boot()); });
  again();
}

LoopLink::~LoopLink() { watches_.clear(); }  // before the descriptors are closed

void LoopLink::again() {
  soon_ = loop_.after(Duration::zero(), [this] { pump(); });
}

void LoopLink::send(const wire::Frame& frame) {
  if (failed_) return;
  output_.erase(0, std::exchange(sent_, 0));
  output_ += wire::encode(frame);
  again();
}

void LoopLink::pump() {
  if (failed_ || !pump_output() || !pump_input() || !pump_output()) return;
  watch();
}

bool LoopLink::pump_output() {
  while (sent_ < output_.size() || !channel_->flushed()) {
    const Result<std::optional<std::size_t>> count =
        channel_->write(as_bytes(std::string_view(output_).substr(sent_)));
    if (!count) return fail(count.error()), false;
    if (!count->has_value() || **count == 0) break;
    sent_ += **count;
  }
  if (output_.size() - sent_ > k_output_max)
    return fail(make_error(Code::host_unreachable, channel_->peer() + " takes no more bytes")), false;
  return true;
}

bool LoopLink::pump_input() {
  std::vector<std::byte> piece(k_read_bytes);
  for (std::size_t taken = 0; taken < k_turn_bytes;) {
    for (;;) {
      Result<std::optional<wire::Frame>> frame = decoder_.next();
      if (!frame) return fail(frame.error()), false;
      if (!frame->has_value()) break;
      on_frame(**frame);
      if (failed_) return false;
    }
    const Result<std::optional<std::size_t>> count = channel_->read(piece);
    if (!count) return fail(count.error()), false;
    if (!count->has_value()) return true;
    if (**count == 0) return fail(closed_error(*channel_)), false;
    decoder_.feed(ByteView{piece.data(), **count});
    taken += **count;
  }
  again();  // more is there; others first
  return true;
}

void LoopLink::fail(Error error) {
  failed_ = true;
  watches_.clear();
  keepalive_.reset();
  soon_.reset();
  on_closed(error);
}

void LoopLink::watch() {
  const std::vector<ssh::Watched> wanted = channel_->wants(sent_ < output_.size());
  bool same_fds = wanted.size() == watched_.size();
  for (std::size_t i = 0; same_fds && i < wanted.size(); ++i) same_fds = wanted[i].fd == watched_[i].fd;
  if (!same_fds) watches_.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!same_fds) watches_.push_back(loop_.watch(wanted[i].fd, wanted[i].interest, [this](os::Interest) { pump(); }));
    else if (wanted[i].interest != watched_[i].interest) loop_.change(watches_[i], wanted[i].interest);
  }
  watched_ = wanted;
}

}  // namespace gridctl::control
