// SPDX-License-Identifier: Apache-2.0
#include "wire/network.hpp"

#include "support/results.hpp"

namespace gridctl::wire::network_test {
namespace {
using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

Digest token() {
  Digest digest;
  digest.bytes.fill(std::byte{0xab});
  return digest;
}

LinkResult result() {
  LinkResult value;
  value.connected = true;
  value.address = "10.0.0.2";
  value.rtt = 1234us;
  value.bits_per_second = 9.5e9;
  value.bytes_sent = 100;
  value.bytes_received = 200;
  value.failures = {{"10.0.0.1", "connection refused"}};
  return value;
}

TEST(LinkMessages, SurviveARoundTrip) {
  const auto ping = parse_ping(encode_ping({0xffffffffffffffff}));
  ASSERT_THAT(ping, IsOk());
  EXPECT_EQ(ping->nonce, 0xffffffffffffffff);
  EXPECT_EQ(parse_pong(encode_pong({7}))->nonce, 7U);
  EXPECT_EQ(parse_sink(encode(SinkRequest{5}))->bytes, 5U);
  EXPECT_EQ(parse_sink_reply(encode(SinkReply{5, ~0ull}))->tally, ~0ull);
  EXPECT_EQ(parse_source(encode(SourceRequest{5, 9}))->seed, 9U);

  const auto listen = parse_listen(encode(ListenRequest{token(), 3s, 10s, 64 << 20}));
  ASSERT_THAT(listen, IsOk());
  EXPECT_EQ(listen->token, token());
  EXPECT_EQ(listen->accept_max, Duration{3s});
  EXPECT_EQ(listen->bytes_max, 64U << 20);
  EXPECT_EQ(parse_listen_reply(encode(ListenReply{40000, {"10.0.0.1", "fd00::1"}}))->addresses.size(), 2U);
  const auto connect = parse_connect(encode(ConnectRequest{token(), {"10.0.0.1"}, 40000, 8s, 0}));
  ASSERT_THAT(connect, IsOk());
  EXPECT_EQ(connect->port, 40000);

  const auto back = parse_link_result(encode(result()));
  ASSERT_THAT(back, IsOk());
  EXPECT_EQ(back->rtt, Duration{1234us});
  EXPECT_EQ(back->bits_per_second, 9.5e9);
  EXPECT_EQ(back->failures[0].reason, "connection refused");
  EXPECT_FALSE(parse_link_result(encode(LinkResult{}))->rtt);

  const auto reach = parse_reach(encode(ReachRequest{{{"10.0.0.1", 443}}, 3}));
  ASSERT_THAT(reach, IsOk());
  EXPECT_EQ(reach->targets[0].port, 443);
  const auto reached = parse_reach_reply(encode(ReachReply{{{5ms, ""}, {std::nullopt, "refused"}}}));
  ASSERT_THAT(reached, IsOk());
  EXPECT_EQ(reached->targets[0].rtt, Duration{5ms});
  EXPECT_EQ(reached->targets[1].problem, "refused");
}

TEST(LinkMessages, RefuseWhatIsBeyondTheirBounds) {
  EXPECT_THAT(parse_listen(encode(ListenRequest{token(), 3s, 11s, 0})), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_listen(encode(ListenRequest{token(), 3s, 9s, k_link_exchange_max + 1})),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_sink(encode(SinkRequest{k_link_step_max + 1})), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_source(encode(SourceRequest{k_link_step_max + 1, 0})), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_connect(encode(ConnectRequest{token(), {"10.0.0.1"}, 0, 8s, 0})),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_connect(encode(
                  ConnectRequest{token(), std::vector<std::string>(k_link_addresses_max + 1, "1.2.3.4"), 9, 8s, 0})),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_connect(encode(ConnectRequest{token(), {std::string(65, '1')}, 9, 8s, 0})),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_reach(encode(ReachRequest{{k_link_targets_max + 1, {"1.2.3.4", 1}}, 1})),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_reach(encode(ReachRequest{{{"1.2.3.4", 1}}, k_link_tries_max + 1})),
              FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_ping(encode(SinkRequest{5})), FailsWith(Code::protocol_violation));
}

TEST(LinkMessages, RefuseFiguresThatNoLinkHas) {
  LinkResult fast = result();
  fast.bits_per_second = 1e15;
  EXPECT_THAT(parse_link_result(encode(fast)), FailsWith(Code::protocol_violation));
  LinkResult negative = result();
  negative.rtt = -1ms;
  EXPECT_THAT(parse_link_result(encode(negative)), FailsWith(Code::protocol_violation));
  EXPECT_THAT(parse_reach_reply(R"({"targets":[{"problem":""}]})"), FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::wire::network_test
