// SPDX-License-Identifier: Apache-2.0
#include "wire/network.hpp"

#include "wire/coding.hpp"

namespace gridctl::wire {

namespace {
constexpr std::size_t k_address_max = 64;                // bytes of a numeric address
constexpr std::size_t k_reason_max = 200;                // bytes of text about one address
constexpr Duration k_rtt_max = std::chrono::minutes{1};  // a longer one is no round trip
constexpr double k_rate_max = 1e14;                      // bits per second, beyond any link

// Declares parts that several of these messages share.
template <class R>
void add_time(R& r, const char* key, Of<R, Duration>& time) {
  r(key, time).check(time <= k_link_time_max, "takes more than 10 s");
}

template <class R>
void add_addresses(R& r, Of<R, std::vector<std::string>>& addresses) {
  r("addresses", addresses, k_link_addresses_max, k_address_max);
  for (const std::string& address : addresses) r.check(!address.empty(), "has an address of the wrong length");
}

template <class R>
void add_port(R& r, Of<R, std::uint16_t>& port) {
  r("port", port).check(port != 0, "has no port");
}

template <class R>
void add_rtt(R& r, Of<R, std::optional<Duration>>& rtt) {
  r.maybe("rtt_us", rtt).check(!rtt || *rtt <= k_rtt_max, "has a round trip of more than a minute");
}
}  // namespace

template <class R>
void fields(R& r, Of<R, PingMessage>& m) {
  r("nonce", m.nonce);
}

template <class R>
void fields(R& r, Of<R, SinkRequest>& m) {
  r("bytes", m.bytes, k_link_step_max);
}

template <class R>
void fields(R& r, Of<R, SinkReply>& m) {
  r("bytes", m.bytes, k_link_step_max)("tally", m.tally);
}

template <class R>
void fields(R& r, Of<R, SourceRequest>& m) {
  r("bytes", m.bytes, k_link_step_max)("seed", m.seed);
}

template <class R>
void fields(R& r, Of<R, ListenRequest>& m) {
  r("token", m.token);
  add_time(r, "accept_ms", m.accept_max);
  add_time(r, "time_ms", m.time_max);
  r("bytes_max", m.bytes_max, k_link_exchange_max).unless("port", m.port, 0);
}

template <class R>
void fields(R& r, Of<R, ListenReply>& m) {
  add_port(r, m.port);
  add_addresses(r, m.addresses);
  r.unless("interfaces", m.interfaces, {}, k_link_addresses_max);
  r.check(m.interfaces.size() <= m.addresses.size(), "has more interfaces than addresses");
  r.unless("ephemeral_first", m.ephemeral_first, 0);
}

template <class R>
void fields(R& r, Of<R, ConnectRequest>& m) {
  r("token", m.token);
  add_addresses(r, m.addresses);
  add_port(r, m.port);
  add_time(r, "time_ms", m.time_max);
  r("bytes_max", m.bytes_max, k_link_exchange_max);
}

template <class R>
void fields(R& r, Of<R, LinkFailure>& m) {
  r("address", m.address, k_address_max)("reason", m.reason, k_reason_max);
}

template <class R>
void fields(R& r, Of<R, LinkResult>& m) {
  r("connected", m.connected)("address", m.address, k_address_max);
  add_rtt(r, m.rtt);
  r.maybe("bits_per_second", m.bits_per_second, 0.0, k_rate_max);
  r("bytes_sent", m.bytes_sent, k_link_exchange_max)("bytes_received", m.bytes_received, k_link_exchange_max);
  r("failures", m.failures, k_link_addresses_max);
}

template <class R>
void fields(R& r, Of<R, ReachRequest::Target>& m) {
  r("address", m.address, k_address_max);
  add_port(r, m.port);
}

template <class R>
void fields(R& r, Of<R, ReachRequest>& m) {
  r("targets", m.targets, k_link_targets_max)("tries", m.tries, k_link_tries_max);
  r.check(m.tries > 0, "requests no try");
}

template <class R>
void fields(R& r, Of<R, ReachReply::Reached>& m) {
  add_rtt(r, m.rtt);
  r("problem", m.problem, k_reason_max);
  r.check(m.rtt.has_value() == m.problem.empty(), "is neither a time nor a problem");
}

template <class R>
void fields(R& r, Of<R, ReachReply>& m) {
  r("targets", m.targets, k_link_targets_max);
}

std::string encode_ping(const PingMessage& m) { return encode_request(k_link_ping, m); }
std::string encode_pong(const PingMessage& m) { return write_record(m); }
GRIDCTL_REQUEST(SinkRequest, parse_sink, k_link_sink)
GRIDCTL_REPLY(SinkReply, parse_sink_reply, "link_sink reply")
GRIDCTL_REQUEST(SourceRequest, parse_source, k_link_source)
GRIDCTL_REQUEST(ListenRequest, parse_listen, k_link_listen)
GRIDCTL_REPLY(ListenReply, parse_listen_reply, "link_listen reply")
GRIDCTL_REQUEST(ConnectRequest, parse_connect, k_link_connect)
std::string encode(LinkResult m) {
  for (LinkFailure& failure : m.failures) failure.reason = failure.reason.substr(0, k_reason_max);
  return write_record(m);
}
GRIDCTL_REQUEST(ReachRequest, parse_reach, k_link_reach)
std::string encode(ReachReply m) {
  for (ReachReply::Reached& reached : m.targets) reached.problem = reached.problem.substr(0, k_reason_max);
  return write_record(m);
}

Result<PingMessage> parse_ping(std::string_view text) { return parse_request<PingMessage>(text, k_link_ping); }
Result<PingMessage> parse_pong(std::string_view text) { return parse_message<PingMessage>(text, "link_ping reply"); }
Result<LinkResult> parse_link_result(std::string_view text) { return parse_message<LinkResult>(text, "link result"); }
Result<ReachReply> parse_reach_reply(std::string_view text) {
  return parse_message<ReachReply>(text, "link_reach reply");
}

}  // namespace gridctl::wire
