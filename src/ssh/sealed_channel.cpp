// SPDX-License-Identifier: Apache-2.0
#include "ssh/sealed_channel.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "os/net.hpp"

namespace gridctl::ssh {

namespace {

constexpr std::size_t k_piece = 64 * 1024;
constexpr std::size_t k_waiting_max = 256 * 1024;  // sealed bytes that the carrier has not taken

class SealedChannel final : public Channel {
 public:
  SealedChannel(std::unique_ptr<Channel> carrier, const SealedWith& with)
      : carrier_(std::move(carrier)), tls_(with.side, with.key, with.identity) {
    for (const SealedWith::Other& other : with.others) tls_.also_accept(other.key, other.identity);
  }

  [[nodiscard]] const std::string& identity() const { return tls_.identity(); }

  Result<bool> handshake() {
    Result<bool> done = tls_.handshake();
    TRY(push());  // also what tells the other side why we refuse
    while (done && !*done) {
      TRY_ASSIGN(const bool more, pull());
      if (!more) break;
      done = tls_.handshake();
      TRY(push());
    }
    if (done && !*done && ended_)
      return make_error(Code::host_unreachable, "the connection ended before it was encrypted");
    return done;
  }

  Result<std::optional<std::size_t>> read(std::span<std::byte> into) override {
    TRY(push());
    for (;;) {
      TRY_ASSIGN(const std::optional<std::size_t> got, tls_.read(into));
      TRY(push());
      if (got) return got;
      if (ended_) return std::optional<std::size_t>{0};
      TRY_ASSIGN(const bool more, pull());
      if (!more && !ended_) return std::optional<std::size_t>{};
    }
  }

  Result<std::optional<std::size_t>> write(ByteView bytes) override {
    TRY(push());
    if (waiting_.size() >= k_waiting_max) return std::optional<std::size_t>{};
    const ByteView piece = bytes.first(std::min(bytes.size(), k_piece));
    TRY(tls_.write(piece));
    TRY(push());
    return std::optional{piece.size()};
  }

  [[nodiscard]] bool flushed() const override { return waiting_.empty() && carrier_->flushed(); }
  void close_write() override {
    tls_.end_output();
    (void)push();  // an error comes back from read
  }
  [[nodiscard]] std::vector<Watched> wants(bool output_pending) const override {
    return carrier_->wants(!waiting_.empty() || (output_pending && waiting_.size() < k_waiting_max));
  }
  void keepalive(BootTime now) override { carrier_->keepalive(now); }
  [[nodiscard]] std::string stderr_tail() const override { return carrier_->stderr_tail(); }
  [[nodiscard]] TransportKind transport() const override { return carrier_->transport(); }
  [[nodiscard]] const std::string& peer() const override { return carrier_->peer(); }

 private:
  // Gives the carrier what it takes now.
  Result<void> push() {
    waiting_ += tls_.take_out();
    std::size_t sent = 0;
    while (sent < waiting_.size()) {
      TRY_ASSIGN(const auto took, carrier_->write(as_bytes(waiting_).subspan(sent)));
      if (!took || *took == 0) break;
      sent += *took;
    }
    waiting_.erase(0, sent);
    return {};
  }

  // Returns false if nothing has arrived.
  Result<bool> pull() {
    TRY_ASSIGN(const std::optional<std::size_t> got, carrier_->read(piece_));
    if (!got) return false;
    if (*got == 0) ended_ = true;
    else tls_.take_in(ByteView{piece_}.first(*got));
    return *got > 0;
  }

  std::unique_ptr<Channel> carrier_;
  crypto::TlsStream tls_;
  std::string waiting_;
  std::array<std::byte, k_piece> piece_{};
  bool ended_ = false;
};

}  // namespace

Result<std::unique_ptr<Channel>> seal(std::unique_ptr<Channel> carrier, const SealedWith& with, BootTime deadline,
                                      os::Clock& clock) {
  auto sealed = std::make_unique<SealedChannel>(std::move(carrier), with);
  for (;;) {
    TRY_ASSIGN(const bool done, sealed->handshake());
    if (done && with.agreed) with.agreed(sealed->identity());
    if (done) return std::unique_ptr<Channel>(std::move(sealed));
    std::vector<os::Poll> polls;
    for (const Watched& one : sealed->wants(false)) polls.push_back({one.fd, one.interest, {}});
    if (clock.boot() >= deadline) return make_error(Code::timed_out, "the other end does not encrypt the connection");
    TRY(os::wait_any(polls, std::min(deadline, clock.boot() + std::chrono::milliseconds{250}), clock));
  }
}

}  // namespace gridctl::ssh
