// SPDX-License-Identifier: Apache-2.0
// libssh2 1.10 has no queue for what it cannot send at once. A call that returns EAGAIN with a packet begun must be
// repeated with the same arguments before any other:
// - A packet may be half sent. Every other packet then fails with BAD_USE and loses the session.
// - A packet may be built and wait for the server's new keys. A read that continues with the window adjustment of
// another
//   read books the size it would have asked for itself; data beyond the window so booked is dropped silently.
// Hence `sender_`: while it is set, only that call continues. Window adjustments are separate calls here, so that no
// read
// makes one. A packet that libssh2 builds on its stack (end of input, keepalive) cannot be repeated if it is half sent:
// it
// goes out only when the socket has room for all of it.
#include "ssh/libssh2_session.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "os/net.hpp"

namespace gridctl::ssh {

namespace {

constexpr std::size_t k_inbound_bytes = 64 * 1024;          // per read; larger ones gain nothing
constexpr std::size_t k_outbound_bytes_max = 256 * 1024;    // below it uploads on a 100 Mbit/s, 40 ms link slow down
constexpr Duration k_keepalive = std::chrono::seconds{15};  // home routers forget a connection after 60 s and less

class Libssh2Channel : public Channel {
 public:
  Libssh2Channel(std::unique_ptr<Session> session, LIBSSH2_CHANNEL* channel, std::string peer)
      : session_(std::move(session)), channel_(channel), peer_(std::move(peer)), inbound_(k_inbound_bytes) {
    // The keepalive is configured only after login: before, it breaks the key exchange. It requests no replies: libssh2
    // queues them for ever, and walks that queue at each read.
    libssh2_keepalive_config(session_->raw(), 0, 2);
    kept_alive_at_ = session_->clock().boot();
  }

  Result<std::optional<std::size_t>> read(std::span<std::byte> into) override {
    pump();
    if (taken_ < filled_) {
      const std::size_t count = std::min(into.size(), filled_ - taken_);
      std::memcpy(into.data(), inbound_.data() + taken_, count);
      taken_ += count;
      return std::optional{count};
    }
    if (failure_) return *failure_;
    if (closed_) return std::optional<std::size_t>{0};
    return std::optional<std::size_t>{};
  }

  Result<std::optional<std::size_t>> write(ByteView bytes) override {
    GRIDCTL_CHECK(!end_wanted_);
    const std::size_t count = std::min(bytes.size(), k_outbound_bytes_max - std::min(k_outbound_bytes_max, pending()));
    outbound_.insert(outbound_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
    pump();
    if (failure_) return *failure_;
    if (count == 0) return std::optional<std::size_t>{};
    return std::optional{count};
  }

  [[nodiscard]] bool flushed() const override { return pending() == 0 && (!end_wanted_ || end_sent_); }

  void close_write() override {
    end_wanted_ = true;
    pump();
  }

  [[nodiscard]] std::vector<Watched> wants(bool output_pending) const override {
    // A half-sent packet waits for room, and nothing is read before it is sent. A packet that waits for new keys waits
    // for a read.
    if (sender_ != Sender::none)
      return {{session_->fd(), {.read = !session_->sending(), .write = session_->sending()}}};
    const bool to_send = pending() > 0 || (output_pending && !end_wanted_) || (end_wanted_ && !end_sent_);
    // If the window of the host is used up, only its answer helps: waiting to write would spin.
    return {{session_->fd(), {.read = true, .write = more_ || (to_send && !window_full_)}}};
  }

  void keepalive(BootTime now) override {
    if (failure_ || closed_ || now - kept_alive_at_ < k_keepalive) return;
    // The packet cannot be repeated if half sent, so it is sent only when it is sure to go out completely.
    if (sender_ != Sender::none || session_->sending() || !os::is_writable(session_->fd())) return;
    kept_alive_at_ = now;
    int next = 0;
    if (libssh2_keepalive_send(session_->raw(), &next) != 0) fail("sending a keepalive");
  }

  [[nodiscard]] std::string stderr_tail() const override { return stderr_tail_; }
  [[nodiscard]] TransportKind transport() const override { return TransportKind::libssh2; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }

 private:
  enum class Sender { none, adjust, read, read_stderr, write, end };

  [[nodiscard]] std::size_t pending() const { return outbound_.size() - sent_; }

  void pump() {
    if (failure_) return;
    more_ = false;
    switch (sender_) {
      case Sender::none: pull(); break;
      case Sender::adjust: adjust(); break;
      case Sender::read: read_stdout(); break;
      case Sender::read_stderr: drain_stderr(); break;
      case Sender::write:
      case Sender::end: break;
    }
    if (sender_ == Sender::none || sender_ == Sender::write) push();
    if (sender_ == Sender::none || sender_ == Sender::end) end();
    pull();
  }

  // Call it after each libssh2 call; returns false if that call must be repeated before any other.
  bool note(Sender caller, long rc, bool packet_built = false) {
    sender_ = rc == LIBSSH2_ERROR_EAGAIN && (packet_built || session_->sending()) ? caller : Sender::none;
    return sender_ == Sender::none;
  }

  void pull() {
    if (failure_ || closed_ || sender_ != Sender::none) return;
    do {
      if (adjust()) read_stdout();
      if (adjust()) drain_stderr();
      if (failure_ || sender_ != Sender::none) return;
      // Reading one stream also receives data for the other: no descriptor announces it again.
    } while (taken_ == filled_ && libssh2_poll_channel_read(channel_, 0) == 1);
    if (libssh2_channel_eof(channel_) == 1) closed_ = true;
  }

  // Keeps the window as wide as libssh2 would: then no read sends an adjustment. Returns false: do not read now.
  bool adjust() {
    if (failure_ || (sender_ != Sender::none && sender_ != Sender::adjust)) return false;
    if (sender_ == Sender::none) {
      unsigned long initial = 0;
      const unsigned long window = libssh2_channel_window_read_ex(channel_, nullptr, &initial);
      if (window >= initial / 4 * 3 + k_inbound_bytes || libssh2_channel_eof(channel_) == 1) return true;
      adjustment_ = initial + k_inbound_bytes - window;
    }
    const long rc = libssh2_channel_receive_window_adjust2(channel_, adjustment_, 1, nullptr);
    if (!note(Sender::adjust, rc, true)) return false;
    if (rc != 0) fail("widening its window");
    return rc == 0;
  }

  void read_stdout() {
    if (failure_ || taken_ < filled_) return;
    const long count = libssh2_channel_read(channel_, reinterpret_cast<char*>(inbound_.data()), inbound_.size());
    if (!note(Sender::read, count)) return;
    if (count < 0 && count != LIBSSH2_ERROR_EAGAIN) return fail("reading");
    taken_ = 0;
    filled_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  }

  // stdout and stderr share one window: an unread stderr stops both.
  void drain_stderr() {
    std::array<char, 16 * 1024> buffer;
    for (std::size_t total = 0; total < k_stderr_turn_bytes_max;) {
      const long count = libssh2_channel_read_stderr(channel_, buffer.data(), buffer.size());
      if (!note(Sender::read_stderr, count) || count == LIBSSH2_ERROR_EAGAIN || count == 0) return;
      if (count < 0) return fail("reading");
      keep_tail(stderr_tail_, {buffer.data(), static_cast<std::size_t>(count)});
      total += static_cast<std::size_t>(count);
      if (!adjust()) return;
    }
    more_ = true;  // queued inside libssh2, where no poll sees it
  }

  void push() {
    window_full_ = false;
    while (pending() > 0 && !failure_) {
      const long count =
          libssh2_channel_write(channel_, reinterpret_cast<const char*>(outbound_.data()) + sent_, pending());
      // Without room in the window, no packet was begun; with room, one was, and libssh2 has kept its length.
      if (!note(Sender::write, count, libssh2_channel_window_write(channel_) > 0)) break;
      if (count == LIBSSH2_ERROR_EAGAIN || count == 0) {
        window_full_ = true;
        break;
      }
      if (count < 0) return closed_ ? drop_output() : fail("writing");
      sent_ += static_cast<std::size_t>(count);
    }
    if (pending() == 0) drop_output();
    if (sent_ >= k_outbound_bytes_max) {
      outbound_.erase(outbound_.begin(), outbound_.begin() + static_cast<std::ptrdiff_t>(sent_));
      sent_ = 0;
    }
  }

  void drop_output() {
    outbound_.clear();
    sent_ = 0;
  }

  void end() {
    if (!end_wanted_ || end_sent_ || pending() > 0 || failure_) return;
    if (sender_ == Sender::none && !os::is_writable(session_->fd())) return;
    const long rc = libssh2_channel_send_eof(channel_);
    if (!note(Sender::end, rc, true)) return;
    if (rc == LIBSSH2_ERROR_BAD_USE) return fail("ending its input");
    end_sent_ = true;  // a refusal means that the host has closed already
  }

  void fail(const char* doing) {
    sender_ = Sender::none;
    failure_ = make_error(Code::host_unreachable,
                          "the connection to " + peer_ + " broke while " + doing + ": " + session_->last_error());
  }

  std::unique_ptr<Session> session_;  // frees the channel, too
  LIBSSH2_CHANNEL* channel_;
  std::string peer_;
  std::vector<std::byte> inbound_;
  std::size_t taken_ = 0, filled_ = 0;
  std::vector<std::byte> outbound_;
  std::size_t sent_ = 0;
  std::string stderr_tail_;
  std::optional<Error> failure_;
  Sender sender_ = Sender::none;
  bool closed_ = false, end_wanted_ = false, end_sent_ = false;
  bool window_full_ = false;
  bool more_ = false;
  unsigned long adjustment_ = 0;  // of the adjustment under way
  BootTime kept_alive_at_;
};

}  // namespace

std::unique_ptr<Channel> make_libssh2_channel(std::unique_ptr<Session> session, LIBSSH2_CHANNEL* channel,
                                              std::string peer) {
  return std::make_unique<Libssh2Channel>(std::move(session), channel, std::move(peer));
}

}  // namespace gridctl::ssh
