// SPDX-License-Identifier: Apache-2.0
// Defines messages that measure links: between controller and host, between two hosts, from a host to landmarks.
// Feature word "links" of the agent; gridctl-agent(7), LINKS.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "wire/message.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_links_feature = "links";
inline constexpr std::uint64_t k_link_step_max = 32ull << 20;      // bytes of one link_sink or link_source
inline constexpr std::uint64_t k_link_exchange_max = 64ull << 20;  // bytes of one exchange, each way
inline constexpr Duration k_link_time_max = std::chrono::seconds{10};
inline constexpr std::size_t k_link_addresses_max = 8;
inline constexpr std::size_t k_link_targets_max = 8;  // landmarks in one request
inline constexpr std::uint32_t k_link_tries_max = 4;  // connects to one of them

// The reply must repeat the nonce: a host cannot answer before it was asked.
struct PingMessage {
  std::uint64_t nonce = 0;
};

// link_sink: `bytes` of data and an end record follow the request; the reply proves with its tally that all of them
// arrived. link_source: reply {}, then data (probe::Noise of the seed), end.
struct SinkRequest {
  std::uint64_t bytes = 0;
};
struct SinkReply {
  std::uint64_t bytes = 0, tally = 0;
};
struct SourceRequest {
  std::uint64_t bytes = 0, seed = 0;
};

// link_listen: reply with the port, then one data frame with a LinkResult and an end record. The token is for one use.
struct ListenRequest {
  Digest token;
  Duration accept_max{}, time_max{};  // for somebody to come; for all of it
  std::uint64_t bytes_max = 0;        // each way; 0: round trips only
  std::uint16_t port = 0;             // to listen on, from 1024; 0: any. Feature word "gangs"
};
struct ListenReply {
  std::uint16_t port = 0;
  std::vector<std::string> addresses;     // of the host, as it knows them: numeric
  std::vector<std::string> interfaces{};  // of those addresses, in their order; empty from older agents
  std::uint16_t ephemeral_first = 0;      // the lowest port that outgoing connections are given; 0: not known
};
struct ConnectRequest {
  Digest token;
  std::vector<std::string> addresses;  // tried in this order
  std::uint16_t port = 0;
  Duration time_max{};
  std::uint64_t bytes_max = 0;
};
struct LinkFailure {
  std::string address, reason;
};
// Holds the measurements of one end: its own round trip, its own sending rate (the other end proves the arrival).
struct LinkResult {
  bool connected = false;
  std::string address;  // of the peer, where connected
  std::optional<Duration> rtt;
  std::optional<double> bits_per_second;
  std::uint64_t bytes_sent = 0, bytes_received = 0;
  std::vector<LinkFailure> failures;  // addresses that did not work
};

// link_reach: how long a TCP connection takes; nothing is sent.
struct ReachRequest {
  struct Target {
    std::string address;  // numeric
    std::uint16_t port = 0;
  };
  std::vector<Target> targets;
  std::uint32_t tries = 1;
};
struct ReachReply {
  struct Reached {
    std::optional<Duration> rtt;  // smallest of the tries
    std::string problem;          // empty where rtt is set
  };
  std::vector<Reached> targets;  // in the order of the request
};

inline constexpr std::string_view k_link_ping = "link_ping", k_link_sink = "link_sink", k_link_source = "link_source",
                                  k_link_listen = "link_listen", k_link_connect = "link_connect",
                                  k_link_reach = "link_reach";
[[nodiscard]] std::string encode_ping(const PingMessage&);  // op "link_ping"
[[nodiscard]] std::string encode_pong(const PingMessage&);  // its reply
GRIDCTL_MESSAGE(SinkRequest, parse_sink)  // op "link_sink"
GRIDCTL_MESSAGE(SinkReply, parse_sink_reply)
GRIDCTL_MESSAGE(SourceRequest, parse_source)  // op "link_source"
GRIDCTL_MESSAGE(ListenRequest, parse_listen)  // op "link_listen"
GRIDCTL_MESSAGE(ListenReply, parse_listen_reply)
GRIDCTL_MESSAGE(ConnectRequest, parse_connect)  // op "link_connect"
[[nodiscard]] std::string encode(LinkResult);
GRIDCTL_MESSAGE(ReachRequest, parse_reach)  // op "link_reach"
[[nodiscard]] std::string encode(ReachReply);

[[nodiscard]] Result<PingMessage> parse_ping(std::string_view);
[[nodiscard]] Result<PingMessage> parse_pong(std::string_view);
[[nodiscard]] Result<LinkResult> parse_link_result(std::string_view);
[[nodiscard]] Result<ReachReply> parse_reach_reply(std::string_view);

}  // namespace gridctl::wire
