// SPDX-License-Identifier: Apache-2.0
// Connections between hosts, on this machine's own addresses.
#include "agent/peer_socket.hpp"

#include <gmock/gmock.h>

#include <array>
#include <thread>

#include "os/clock.hpp"
#include "support/results.hpp"

namespace gridctl::agent::peer_socket_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

const os::Clock& clock_now() { return os::system_clock(); }
BootTime in(Duration time) { return clock_now().boot() + time; }

TEST(PeerSocket, IsReachedByBothFamiliesAndTellsWhoCame) {
  PeerListener listener = *PeerListener::open();
  EXPECT_GT(listener.port(), 0);
  for (const char* address : {"127.0.0.1", "::1"}) {
    const auto connected = connect_numeric(address, listener.port(), in(5s), clock_now());
    if (!connected && std::string_view(address) == "::1") continue;  // a kernel without IPv6
    ASSERT_THAT(connected, IsOk());
    EXPECT_GE(connected->elapsed, 0ns);
    EXPECT_LT(connected->elapsed, 5s);
    const auto peer = listener.accept(in(5s), clock_now());
    ASSERT_THAT(peer, IsOk());
    ASSERT_TRUE(*peer);
    EXPECT_EQ((*peer)->address(), address);
  }
}

TEST(PeerSocket, SaysInAFewWordsWhyItDoesNotConnect) {
  std::uint16_t port = 0;
  { port = PeerListener::open()->port(); }
  const auto refused = connect_numeric("127.0.0.1", port, in(5s), clock_now());
  ASSERT_THAT(refused, FailsWith(Code::host_unreachable));
  EXPECT_EQ(refused.error().message, "connection refused");
  for (const char* name : {"localhost", "127.0.0.1 ", "", "1.2.3", "::g"})
    EXPECT_THAT(connect_numeric(name, port, in(5s), clock_now()), FailsWith(Code::usage)) << name;
}

TEST(PeerSocket, APortHasOneListener) {
  const PeerListener first = *PeerListener::open();
  const auto second = PeerListener::open(first.port());
  ASSERT_THAT(second, FailsWith(Code::busy));
  EXPECT_EQ(second.error().message, "port " + std::to_string(first.port()) + " is in use");
}

TEST(PeerSocket, APortIsFreeAgainForTheNextEpoch) {
  std::uint16_t port = 0;
  {
    PeerListener listener = *PeerListener::open();
    port = listener.port();
    const auto connected = connect_numeric("127.0.0.1", port, in(5s), clock_now());
    ASSERT_THAT(connected, IsOk());
    const auto peer = listener.accept(in(5s), clock_now());
    ASSERT_TRUE(peer && *peer);
  }
  EXPECT_THAT(PeerListener::open(port), IsOk()) << "what the connection leaves behind is no listener";
}

class PeerPair : public ::testing::Test {
 protected:
  PeerPair() {
    auto connected = connect_numeric("127.0.0.1", listener_.port(), in(5s), clock_now());
    EXPECT_THAT(connected, IsOk());
    one_.emplace(std::move(connected->socket), "127.0.0.1", in(10s), clock_now());
    auto accepted = listener_.accept(in(5s), clock_now());
    EXPECT_TRUE(accepted && *accepted);
    other_.emplace(std::move(**accepted));
    other_->set_deadline(in(10s));
  }
  PeerListener listener_ = *PeerListener::open();
  std::optional<PeerStream> one_, other_;
};

TEST_F(PeerPair, MovesAllOfItHoweverMuch) {
  Bytes sent(3 << 20), got(sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 7 >> 3);
  std::thread writer([&] { EXPECT_THAT(one_->write(sent), IsOk()); });
  EXPECT_THAT(other_->read(got), IsOk());
  writer.join();
  EXPECT_EQ(got, sent);
}

TEST_F(PeerPair, EndsAtItsDeadlineInBothDirections) {
  std::array<std::byte, 1> byte{};
  other_->set_deadline(in(30ms));
  const auto silent = other_->read(byte);
  ASSERT_THAT(silent, FailsWith(Code::timed_out));
  EXPECT_EQ(silent.error().message, "the peer did not send in time");
  one_->set_deadline(in(30ms));
  const auto full = one_->write(Bytes(64 << 20));
  ASSERT_THAT(full, FailsWith(Code::timed_out));
  EXPECT_EQ(full.error().message, "the peer did not receive in time");
}

TEST_F(PeerPair, KnowsThatTheOtherHasGone) {
  ASSERT_THAT(other_->write(Bytes(2)), IsOk());
  other_.reset();
  Bytes three(3);
  EXPECT_THAT(one_->read(three), FailsWith(Code::host_unreachable)) << "two came, and then the end";
}

TEST_F(PeerPair, NobodyElseComes) {
  const auto nobody = listener_.accept(in(20ms), clock_now());
  ASSERT_THAT(nobody, IsOk());
  EXPECT_FALSE(*nobody);
}

}  // namespace
}  // namespace gridctl::agent::peer_socket_test
