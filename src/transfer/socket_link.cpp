// SPDX-License-Identifier: Apache-2.0
#include "transfer/socket_link.hpp"

#include <array>

#include "os/ready.hpp"

namespace gridctl::transfer {

namespace {
constexpr std::size_t k_link_read_bytes = 64 * 1024;
constexpr std::size_t k_link_output_max = 8u << 20;
constexpr int k_reads_per_turn = 4;  // then what is to be sent gets its turn
}  // namespace

SocketLink::SocketLink(os::Loop& loop, os::Fd socket) : socket_(std::move(socket)), loop_(loop) {
  watch_ = loop_.watch(socket_.get(), {true, false}, [this](os::Interest ready) { turn(ready); });
}

void SocketLink::send(const wire::Frame& frame) {
  if (closed_) return;
  if (sent_ == output_.size()) output_.clear(), sent_ = 0;
  if (output_.empty()) loop_.change(watch_, {true, true});
  output_ += wire::encode(frame);
}

void SocketLink::turn(os::Interest ready) {
  if (ready.read) read();
  if (!closed_ && ready.write) flush();
}

void SocketLink::read() {
  std::array<std::byte, k_link_read_bytes> buffer;
  for (int turn = 0; turn < k_reads_per_turn && !closed_; ++turn) {
    const Result<os::Moved> got = os::read_now(socket_.get(), buffer);
    if (!got) return close(got.error());
    if (got->closed) return close(make_error(Code::host_unreachable, "the other side closed the link"));
    if (got->blocked) return;
    decoder_.feed(ByteView{buffer}.first(got->bytes));
    while (!closed_) {
      auto frame = decoder_.next();
      if (!frame) return close(frame.error());
      if (!*frame) break;
      if (on_frame) on_frame(**frame);
    }
  }
}

void SocketLink::flush() {
  if (queued_bytes() > k_link_output_max)
    return close(make_error(Code::host_unreachable, "the other side does not read what we send"));
  while (sent_ < output_.size()) {
    const Result<os::Moved> put = os::write_now(socket_.get(), as_bytes(std::string_view(output_).substr(sent_)));
    if (!put) return close(put.error());
    if (put->closed) return close(make_error(Code::host_unreachable, "the other side closed the link"));
    if (put->blocked) return;
    sent_ += put->bytes;
  }
  output_.clear();
  sent_ = 0;
  if (on_room) on_room();
  if (output_.empty() && !closed_) loop_.change(watch_, {true, false});
}

void SocketLink::close(const Error& error) {
  if (closed_) return;
  closed_ = true;
  watch_.reset();
  if (const auto report = on_closed) report(error);
}

}  // namespace gridctl::transfer
