// SPDX-License-Identifier: Apache-2.0
// Two ends of a link on this machine, over real sockets.
#include <gmock/gmock.h>

#include <array>
#include <sys/socket.h>
#include <thread>

#include "agent/peer_exchange.hpp"
#include "crypto/sha256.hpp"
#include "probe/netperf.hpp"
#include "support/results.hpp"

namespace gridctl::agent::peer_exchange_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
const os::Clock& clock_now() { return os::system_clock(); }
BootTime in(Duration time) { return clock_now().boot() + time; }
Digest token(const char* text) { return crypto::sha256(as_bytes(text)); }

PeerStream connected_to(std::uint16_t port) {
  auto connected = connect_numeric("127.0.0.1", port, in(5s), clock_now());
  EXPECT_THAT(connected, IsOk());
  return {std::move(connected->socket), "127.0.0.1", in(10s), clock_now()};
}

// What a listener with this token makes of whoever comes first.
struct Served {
  Result<void> proved = make_error(Code::internal, "nobody came");
  Result<std::uint64_t> received = make_error(Code::internal, "not reached");
  Result<Driven> driven = make_error(Code::internal, "not reached");
};

Served serve_one(PeerListener& listener, const Digest& with, std::uint64_t bytes_max) {
  Served served;
  auto peer = listener.accept(in(5s), clock_now());
  if (!peer || !*peer) return served;
  (*peer)->set_deadline(in(10s));
  served.proved = prove_as_listener(**peer, with);
  if (!served.proved) return served;
  served.received = follow(**peer, bytes_max);
  if (served.received) served.driven = drive(**peer, bytes_max, 4s);
  return served;
}

class Exchange : public ::testing::Test {
 protected:
  PeerListener listener = *PeerListener::open();
  Served served;
  std::thread serve(const Digest& with, std::uint64_t bytes_max) {
    return std::thread([this, with, bytes_max] { served = serve_one(listener, with, bytes_max); });
  }
};

TEST_F(Exchange, MeasuresBothWaysOverOneConnection) {
  std::thread other = serve(token("t"), 8 << 20);
  PeerStream peer = connected_to(listener.port());
  ASSERT_THAT(prove_as_connector(peer, token("t")), IsOk());
  const auto driven = drive(peer, 8 << 20, 4s);
  ASSERT_THAT(driven, IsOk());
  const auto received = follow(peer, 8 << 20);
  other.join();
  ASSERT_THAT(received, IsOk());
  ASSERT_THAT(served.driven, IsOk());
  EXPECT_EQ(*served.received, driven->bytes);
  EXPECT_EQ(*received, served.driven->bytes);
  EXPECT_LE(driven->bytes, 8U << 20);
  EXPECT_GT(driven->bits_per_second.value_or(0), 1e7);
  EXPECT_GT(driven->rtt, 0ns);
  EXPECT_LT(driven->rtt, 500ms);
}

TEST_F(Exchange, SendsNothingWhereOnlyRoundTripsAreWanted) {
  std::thread other = serve(token("t"), 0);
  PeerStream peer = connected_to(listener.port());
  ASSERT_THAT(prove_as_connector(peer, token("t")), IsOk());
  const auto driven = drive(peer, 0, 4s);
  ASSERT_THAT(driven, IsOk());
  ASSERT_THAT(follow(peer, 0), IsOk());
  other.join();
  EXPECT_EQ(driven->bytes, 0U);
  EXPECT_FALSE(driven->bits_per_second);
}

TEST_F(Exchange, GoesNoFurtherWithoutTheToken) {
  std::thread other = serve(token("right"), 1 << 20);
  PeerStream peer = connected_to(listener.port());
  EXPECT_THAT(prove_as_connector(peer, token("wrong")), FailsWith(Code::protocol_violation));
  { const PeerStream gone = std::move(peer); }
  other.join();
  EXPECT_FALSE(served.proved);
}

TEST_F(Exchange, TellsAListenerThatLiesFromOneThatKnows) {
  // Somebody else listens there: it gets 24 bytes, and no more.
  std::size_t got = 0;
  std::thread stranger([&] {
    auto peer = listener.accept(in(5s), clock_now());
    if (!peer || !*peer) return;
    (*peer)->set_deadline(in(5s));
    Bytes hello(24);
    if ((*peer)->read(hello)) got = hello.size();
    (void)(*peer)->write(Bytes(48));
    Bytes more(1);
    if ((*peer)->read(more)) ++got;
  });
  {
    PeerStream peer = connected_to(listener.port());
    EXPECT_THAT(prove_as_connector(peer, token("t")), FailsWith(Code::protocol_violation));
  }
  stranger.join();
  EXPECT_EQ(got, 24U);
}

TEST_F(Exchange, TakesNoMoreThanWasAgreed) {
  std::thread other = serve(token("t"), 1 << 20);
  PeerStream peer = connected_to(listener.port());
  ASSERT_THAT(prove_as_connector(peer, token("t")), IsOk());
  EXPECT_FALSE(drive(peer, 32 << 20, 4s));
  other.join();
  EXPECT_THAT(served.received, FailsWith(Code::protocol_violation));
}

TEST_F(Exchange, EndsAtItsDeadlineWhenTheOtherSideIsSilent) {
  const BootTime began = clock_now().boot();
  auto nobody = listener.accept(in(50ms), clock_now());
  ASSERT_THAT(nobody, IsOk());
  EXPECT_FALSE(*nobody);
  PeerStream peer = connected_to(listener.port());
  peer.set_deadline(in(50ms));
  EXPECT_THAT(prove_as_connector(peer, token("t")), FailsWith(Code::timed_out));
  EXPECT_LT(clock_now().boot() - began, 60s);
}

// A peer that says whatever it likes, message by message.
class RawPeer : public ::testing::Test {
 protected:
  RawPeer() : raw_(connected_to(listener_.port())), peer_(std::move(**listener_.accept(in(5s), clock_now()))) {
    peer_.set_deadline(in(10s));
  }
  void say(char kind, std::uint64_t number, const std::string& behind = "") {
    std::string text(1, kind);
    for (int shift = 56; shift >= 0; shift -= 8) text += static_cast<char>(number >> shift & 0xff);
    EXPECT_THAT(raw_.write(as_bytes(text + behind)), IsOk());
  }
  std::pair<char, std::uint64_t> hear() {
    std::array<std::byte, 9> bytes{};
    EXPECT_THAT(raw_.read(bytes), IsOk());
    std::uint64_t number = 0;
    for (std::size_t i = 1; i < bytes.size(); ++i) number = number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return {static_cast<char>(bytes[0]), number};
  }
  PeerListener listener_ = *PeerListener::open();
  PeerStream raw_, peer_;
};

TEST_F(RawPeer, MaySendExactlyWhatWasAgreedAndGetsItsReceipts) {
  say('P', 77);
  say('D', 3, "abc");
  say('D', 7, "0123456");
  say('X', 0);
  const auto received = follow(peer_, 10);
  ASSERT_THAT(received, IsOk());
  EXPECT_EQ(*received, 10U);
  EXPECT_EQ(hear(), (std::pair<char, std::uint64_t>{'P', 77}));
  for (const char* text : {"abc", "0123456"}) {
    probe::Tally tally;
    tally.add(as_bytes(std::string_view(text)));
    EXPECT_EQ(hear(), (std::pair<char, std::uint64_t>{'T', tally.value()}));
  }
}

TEST_F(RawPeer, MaySendNoByteMore) {
  say('D', 3, "abc");
  say('D', 8, "01234567");
  EXPECT_THAT(follow(peer_, 10), FailsWith(Code::protocol_violation));
}

TEST_F(RawPeer, MaySendNoEmptyStepAndNothingUnknown) {
  say('D', 0);
  EXPECT_THAT(follow(peer_, 10), FailsWith(Code::protocol_violation));
  say('T', 1);
  EXPECT_THAT(follow(peer_, 10), FailsWith(Code::protocol_violation));
  say('x', 0);
  EXPECT_THAT(follow(peer_, 10), FailsWith(Code::protocol_violation));
}

TEST_F(RawPeer, MustComeToAnEndWithinSixtyFourMessages) {
  for (int i = 0; i < 63; ++i) say('P', 1);
  say('X', 0);
  EXPECT_THAT(follow(peer_, 0), IsOk());
  for (int i = 0; i < 64; ++i) say('P', 1);
  EXPECT_THAT(follow(peer_, 0), FailsWith(Code::protocol_violation));
}

TEST_F(RawPeer, MustAnswerAPingWithItsOwnNumber) {
  std::thread other([this] {
    const auto [kind, number] = hear();
    EXPECT_EQ(kind, 'P');
    say('P', number + 1);
  });
  EXPECT_THAT(drive(peer_, 0, 4s), FailsWith(Code::protocol_violation));
  other.join();
}

TEST_F(RawPeer, MustProveWhatItReceived) {
  std::thread other([this] {
    for (;;) {
      const auto [kind, number] = hear();
      if (kind == 'D') {
        Bytes bytes(number);
        EXPECT_THAT(raw_.read(bytes), IsOk());
        return say('T', 0);
      }
      say(kind, number);
    }
  });
  EXPECT_THAT(drive(peer_, 1 << 20, 4s), FailsWith(Code::protocol_violation));
  other.join();
}

}  // namespace
}  // namespace gridctl::agent::peer_exchange_test
