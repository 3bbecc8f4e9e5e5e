// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <array>
#include <sys/socket.h>
#include <thread>

#include "agent/network.hpp"
#include "agent/peer_exchange.hpp"
#include "crypto/sha256.hpp"
#include "probe/netperf.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "transfer/fd_link.hpp"
#include "transfer/stream.hpp"

namespace gridctl::agent::network_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;
using ::testing::HasSubstr;
const os::Clock& clock_now() { return os::system_clock(); }
BootTime in(Duration time) { return clock_now().boot() + time; }
Digest token(const char* text) { return crypto::sha256(as_bytes(text)); }

PeerStream connected_to(std::uint16_t port) {
  auto connected = connect_numeric("127.0.0.1", port, in(5s), clock_now());
  EXPECT_THAT(connected, IsOk());
  return {std::move(connected->socket), "127.0.0.1", in(10s), clock_now()};
}

// An agent's side of a controller's connection.
class Agent : public ::testing::Test {
 protected:
  Agent() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    ours = os::Fd(ends[0]);
    theirs = os::Fd(ends[1]);
    link.emplace(ours.get(), ours.get(), false);
    with.emplace(transfer::Conversation{*link, clock_now(), 20s});
    thread = std::thread([this] {
      transfer::FdLink mine(theirs.get(), theirs.get(), false);
      for (;;) {
        const auto frame = mine.receive(in(60s));
        if (!frame || !Links(mine, home.path(), os::system_clock()).handle(*frame)) break;
      }
      ::shutdown(theirs.get(), SHUT_RDWR);
    });
  }
  ~Agent() override {
    ::shutdown(ours.get(), SHUT_RDWR);
    thread.join();
  }
  Result<std::string> ask(std::string payload) {
    const std::uint32_t stream = ++streams;
    TRY(with->send(wire::FrameKind::request, stream, std::move(payload)));
    return with->reply(stream);
  }

  TempDir home;
  os::Fd ours, theirs;
  std::optional<transfer::FdLink> link;
  std::optional<transfer::Conversation> with;
  std::uint32_t streams = 0;
  std::thread thread;
};

TEST_F(Agent, AnswersAPingWithItsNonce) {
  const auto pong = ask(wire::encode_ping({0x1234567890abcdef}));
  ASSERT_THAT(pong, IsOk());
  EXPECT_EQ(wire::parse_pong(*pong)->nonce, 0x1234567890abcdefU);
}

TEST_F(Agent, ProvesWhatItReceivedAndSendsWhatWasAskedFor) {
  probe::Noise noise(99);
  Bytes bytes(700'000);
  noise.fill(bytes);
  const std::uint32_t stream = ++streams;
  ASSERT_THAT(with->send(wire::FrameKind::request, stream, wire::encode(wire::SinkRequest{bytes.size()})), IsOk());
  ASSERT_THAT(with->send_data(stream, bytes), IsOk());
  const auto receipt = with->reply(stream);
  ASSERT_THAT(receipt, IsOk());
  probe::Tally tally;
  tally.add(bytes);
  EXPECT_EQ(wire::parse_sink_reply(*receipt)->tally, tally.value());
  EXPECT_EQ(wire::parse_sink_reply(*receipt)->bytes, bytes.size());

  ASSERT_THAT(ask(wire::encode(wire::SourceRequest{700'000, 99})), IsOk());
  const auto sent = with->data(streams, 700'000);
  ASSERT_THAT(sent, IsOk());
  EXPECT_EQ(*sent, bytes);
}

TEST_F(Agent, DropsAConnectionThatSendsMoreThanItAnnounced) {
  const std::uint32_t stream = ++streams;
  ASSERT_THAT(with->send(wire::FrameKind::request, stream, wire::encode(wire::SinkRequest{10})), IsOk());
  (void)with->send_data(stream, Bytes(11));
  EXPECT_FALSE(with->reply(stream));
}

// Whatever a controller says, this host knocks at nobody's door but another host's.
TEST_F(Agent, RefusesToKnockAtItsOwnDoorsOrTheClouds) {
  const std::vector<std::string> doors{"127.0.0.1", "::1", "0.0.0.0", "169.254.169.254", "224.0.0.1", "localhost"};
  const auto reply = ask(wire::encode(wire::ConnectRequest{token("t"), doors, 40000, 5s, 0}));
  ASSERT_THAT(reply, IsOk());
  const auto result = wire::parse_link_result(*reply);
  ASSERT_THAT(result, IsOk());
  EXPECT_FALSE(result->connected);
  ASSERT_EQ(result->failures.size(), doors.size());
  for (const auto& failure : result->failures) EXPECT_EQ(failure.reason, "not an address of another host");

  const auto low = ask(wire::encode(wire::ConnectRequest{token("t"), {"10.0.0.1"}, 22, 5s, 0}));
  ASSERT_THAT(low, IsOk());
  EXPECT_THAT(wire::parse_link_result(*low)->failures.at(0).reason, HasSubstr("not a port"));

  const auto reach = ask(wire::encode(wire::ReachRequest{{{"127.0.0.1", 22}, {"169.254.169.254", 80}}, 1}));
  ASSERT_THAT(reach, IsOk());
  const auto reached = wire::parse_reach_reply(*reach);
  ASSERT_THAT(reached, IsOk());
  for (const auto& target : reached->targets) EXPECT_EQ(target.problem, "not an address of another host");
}

TEST_F(Agent, ListensForAMomentAndThenNoMore) {
  const auto reply = ask(wire::encode(wire::ListenRequest{token("t"), 100ms, 2s, 0}));
  ASSERT_THAT(reply, IsOk());
  const auto where = wire::parse_listen_reply(*reply);
  ASSERT_THAT(where, IsOk());
  EXPECT_GE(where->port, 1024);
  for (const std::string& address : where->addresses) EXPECT_FALSE(address.starts_with("127.")) << address;
  EXPECT_THAT(with->data(streams, 4096), FailsWith(Code::timed_out));  // nobody came
  EXPECT_FALSE(connect_numeric("127.0.0.1", where->port, in(1s), clock_now()));
}

TEST_F(Agent, MeasuresWithWhoeverHasTheToken) {
  const auto reply = ask(wire::encode(wire::ListenRequest{token("t"), 5s, 8s, 4 << 20}));
  ASSERT_THAT(reply, IsOk());
  const std::uint16_t port = wire::parse_listen_reply(*reply)->port;
  { const PeerStream stranger = connected_to(port); }  // who says nothing does no harm
  {
    PeerStream peer = connected_to(port);
    ASSERT_THAT(prove_as_connector(peer, token("t")), IsOk());
    ASSERT_THAT(drive(peer, 4 << 20, 2s), IsOk());
    ASSERT_THAT(follow(peer, 4 << 20), IsOk());
  }
  const auto result = with->data(streams, 64 * 1024);
  ASSERT_THAT(result, IsOk());
  const auto parsed = wire::parse_link_result(as_text(*result));
  ASSERT_THAT(parsed, IsOk());
  EXPECT_TRUE(parsed->connected);
  EXPECT_TRUE(parsed->bits_per_second);
  EXPECT_FALSE(connect_numeric("127.0.0.1", port, in(1s), clock_now()));
}

TEST_F(Agent, GivesNoMoreThanItsDaysShare) {
  // As much as a thousand connections: 8 targets, 4 tries each.
  const std::vector<wire::ReachRequest::Target> targets(8, {"127.0.0.1", 9});
  Result<std::string> last = std::string();
  int granted = 0;
  while (granted < 100 && (last = ask(wire::encode(wire::ReachRequest{targets, 4})))) ++granted;
  EXPECT_EQ(granted, 31);
  EXPECT_THAT(last, FailsWith(Code::refused));
  EXPECT_THAT(ask(wire::encode(wire::ListenRequest{token("t"), 100ms, 1s, 0})), IsOk());  // 992 + 1 are within
}

TEST_F(Agent, CountsTheBytesThatWentAndNotThoseThatMight) {
  const std::vector<std::string> nowhere{"127.0.0.1"};
  for (int i = 0; i < 40; ++i)  // 40 times 128 MiB might have gone
    ASSERT_THAT(ask(wire::encode(wire::ConnectRequest{token("t"), nowhere, 40000, 1s, wire::k_link_exchange_max})),
                IsOk());
}

TEST_F(Agent, WritesDownWhatADayHasSeen) {
  const std::string today = std::to_string(os::system_clock().wall().ms / 86'400'000);
  const auto spent = [&] { return os::read_file(home / "links").value_or(""); };
  const std::vector<wire::ReachRequest::Target> targets(3, {"127.0.0.1", 9});
  ASSERT_THAT(ask(wire::encode(wire::ReachRequest{targets, 2})), IsOk());
  EXPECT_EQ(spent(), today + " 0 6\n");
  ASSERT_THAT(ask(wire::encode(wire::ConnectRequest{token("t"), {"127.0.0.1", "::1"}, 40000, 1s, 1000})), IsOk());
  EXPECT_EQ(spent(), today + " 0 8\n") << "connections count, and bytes that did not go do not";
  // What an agent counted that was killed meanwhile stays spent.
  const std::string share = std::to_string(k_link_bytes_day - 2000);
  ASSERT_THAT(os::write_file_atomically(home / "links", today + " " + share + " 8\n"), IsOk());
  ASSERT_THAT(ask(wire::encode(wire::ConnectRequest{token("t"), {"127.0.0.1"}, 40000, 1s, 1000})), IsOk());
  EXPECT_EQ(spent(), today + " " + share + " 9\n");
  const auto over = ask(wire::encode(wire::ConnectRequest{token("t"), {"127.0.0.1"}, 40000, 1s, 1001}));
  ASSERT_THAT(over, FailsWith(Code::refused));
  EXPECT_THAT(over.error().message, HasSubstr("enough links for today"));
  EXPECT_THAT(ask(wire::encode(wire::ListenRequest{token("t"), 100ms, 1s, 1001})), FailsWith(Code::refused));
  for (const char* text : {"1 9999999999999 9999\n", "nonsense", ""}) {
    ASSERT_THAT(os::write_file_atomically(home / "links", text), IsOk());
    EXPECT_THAT(ask(wire::encode(wire::ConnectRequest{token("t"), {"127.0.0.1"}, 40000, 1s, 1001})), IsOk())
        << "another day, or none: " << text;
    EXPECT_EQ(spent(), today + " 0 1\n");
  }
}

TEST_F(Agent, ListensWhereItIsToldToUnlessThatIsTakenOrOthers) {
  wire::ListenRequest request{token("t"), 100ms, 1s, 0};
  request.port = 1023;
  EXPECT_THAT(ask(wire::encode(request)), FailsWith(Code::refused));
  const PeerListener taken = *PeerListener::open();
  request.port = taken.port();
  EXPECT_THAT(ask(wire::encode(request)), FailsWith(Code::busy));
}

TEST_F(Agent, ListensForNoMoreThanEightStrangers) {
  const auto reply = ask(wire::encode(wire::ListenRequest{token("t"), 8s, 9s, 0}));
  ASSERT_THAT(reply, IsOk());
  const std::uint16_t port = wire::parse_listen_reply(*reply)->port;
  for (std::size_t i = 0; i < k_link_strangers_max; ++i) {
    PeerStream stranger = connected_to(port);
    EXPECT_FALSE(prove_as_connector(stranger, token("wrong")));
  }
  const auto measured = with->data(streams, 4096);
  ASSERT_THAT(measured, FailsWith(Code::refused));
  EXPECT_THAT(measured.error().message, HasSubstr("only unknown peers connected"));
}

TEST_F(Agent, KnowsNoOtherOperationOnLinks) {
  EXPECT_TRUE(Links::serves("link_ping"));
  EXPECT_FALSE(Links::serves("ping"));
  EXPECT_THAT(ask(wire::encode_plain("link_dance")), FailsWith(Code::unsupported));
  EXPECT_THAT(ask(wire::encode_ping({1})), IsOk()) << "the connection goes on";
}

TEST_F(Agent, TakesExactlyWhatWasAnnouncedAndOnItsOwnStream) {
  std::uint32_t stream = ++streams;
  ASSERT_THAT(with->send(wire::FrameKind::request, stream, wire::encode(wire::SinkRequest{10})), IsOk());
  ASSERT_THAT(with->send(wire::FrameKind::data, stream, "0123456789"), IsOk());
  ASSERT_THAT(with->send(wire::FrameKind::end, stream, wire::encode(wire::EndRecord{10, std::nullopt})), IsOk());
  const auto receipt = with->reply(stream);
  ASSERT_THAT(receipt, IsOk());
  EXPECT_EQ(wire::parse_sink_reply(*receipt)->bytes, 10u);
  stream = ++streams;
  ASSERT_THAT(with->send(wire::FrameKind::request, stream, wire::encode(wire::SinkRequest{10})), IsOk());
  ASSERT_THAT(with->send(wire::FrameKind::data, stream + 1, "0"), IsOk());
  EXPECT_FALSE(with->reply(stream)) << "another operation interrupted this one";
}

TEST_F(Agent, TakesNoRequestWhereDataWereAnnounced) {
  const std::uint32_t stream = ++streams;
  ASSERT_THAT(with->send(wire::FrameKind::request, stream, wire::encode(wire::SinkRequest{1000})), IsOk());
  ASSERT_THAT(with->send(wire::FrameKind::request, stream, "{}"), IsOk());
  EXPECT_FALSE(with->reply(stream));
}

TEST_F(Agent, MeasuresOneLinkAtATime) {
  const auto held = os::FileLock::try_acquire(home.path() / "links.lock");
  ASSERT_THAT(held, IsOk());
  EXPECT_THAT(ask(wire::encode(wire::ConnectRequest{token("t"), {"10.0.0.1"}, 40000, 1s, 0})), FailsWith(Code::busy));
  EXPECT_THAT(ask(wire::encode(wire::ListenRequest{token("t"), 1s, 1s, 0})), FailsWith(Code::busy));
}

}  // namespace
}  // namespace gridctl::agent::network_test
