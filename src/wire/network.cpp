// SPDX-License-Identifier: Apache-2.0
#include "wire/network.hpp"

#include <nlohmann/json.hpp>

#include "wire/fields.hpp"

namespace gridctl::wire {

using nlohmann::json;

namespace {
constexpr std::size_t k_address_max = 64;          // bytes of a numeric address
constexpr std::size_t k_reason_max = 200;          // bytes of text about one address
constexpr std::int64_t k_rtt_max_us = 60'000'000;  // a longer one is no round trip
constexpr double k_rate_max = 1e14;                // bits per second, beyond any link
constexpr std::uint64_t k_port_max = 65535;

PingMessage read_nonce(const Fields& fields) { return {fields.number("nonce")}; }
SinkRequest read_sink(const Fields& fields) { return {fields.number("bytes", k_link_step_max)}; }
SinkReply read_sink_reply(const Fields& fields) {
  return {fields.number("bytes", k_link_step_max), fields.number("tally")};
}
SourceRequest read_source(const Fields& fields) {
  return {fields.number("bytes", k_link_step_max), fields.number("seed")};
}

Duration read_time(const Fields& fields, const char* key) {
  const Duration time = fields.duration(key);
  if (time > k_link_time_max) fields.fail(std::string("has a '") + key + "' of more than 10 s");
  return time;
}

std::vector<std::string> read_addresses(const Fields& fields) {
  std::vector<std::string> addresses = fields.texts("addresses", k_link_addresses_max);
  for (const std::string& address : addresses)
    if (address.empty() || address.size() > k_address_max) fields.fail("has an address of a wrong length");
  return addresses;
}

std::uint16_t read_port(const Fields& fields) {
  const auto port = static_cast<std::uint16_t>(fields.number("port", k_port_max));
  if (port == 0) fields.fail("has no port");
  return port;
}

std::optional<Duration> read_rtt(const Fields& fields) {
  if (!fields.has("rtt_us")) return std::nullopt;
  return std::chrono::microseconds{fields.integer("rtt_us", 0, k_rtt_max_us)};
}

std::int64_t to_us(Duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

ListenRequest read_listen(const Fields& fields) {
  ListenRequest request{fields.digest("token"), read_time(fields, "accept_ms"), read_time(fields, "time_ms"),
                        fields.number("bytes_max", k_link_exchange_max)};
  if (fields.has("port")) request.port = read_port(fields);
  return request;
}
ListenReply read_listen_reply(const Fields& fields) {
  ListenReply reply{read_port(fields), read_addresses(fields)};
  if (fields.has("interfaces")) reply.interfaces = fields.texts("interfaces", k_link_addresses_max);
  if (reply.interfaces.size() > reply.addresses.size()) fields.fail("has more interfaces than addresses");
  if (fields.has("ephemeral_first"))
    reply.ephemeral_first = static_cast<std::uint16_t>(fields.number("ephemeral_first", k_port_max));
  return reply;
}
ConnectRequest read_connect(const Fields& fields) {
  return {fields.digest("token"), read_addresses(fields), read_port(fields), read_time(fields, "time_ms"),
          fields.number("bytes_max", k_link_exchange_max)};
}

LinkFailure read_failure(const Fields& fields) {
  return {fields.text("address", k_address_max), fields.text("reason", k_reason_max)};
}
LinkResult read_result(const Fields& fields) {
  LinkResult result;
  result.connected = fields.flag("connected");
  result.address = fields.text("address", k_address_max);
  result.rtt = read_rtt(fields);
  if (fields.has("bits_per_second")) {
    result.bits_per_second = fields.real("bits_per_second");
    if (*result.bits_per_second > k_rate_max) fields.fail("has a rate that no link has");
  }
  result.bytes_sent = fields.number("bytes_sent", k_link_exchange_max);
  result.bytes_received = fields.number("bytes_received", k_link_exchange_max);
  result.failures = fields.list("failures", k_link_addresses_max, &read_failure);
  return result;
}

ReachRequest::Target read_target(const Fields& fields) {
  const std::string address = fields.text("address", k_address_max);
  return {address, read_port(fields)};
}
ReachRequest read_reach(const Fields& fields) {
  return {fields.list("targets", k_link_targets_max, &read_target),
          static_cast<std::uint32_t>(fields.integer("tries", 1, k_link_tries_max))};
}
ReachReply::Reached read_reached(const Fields& fields) {
  ReachReply::Reached reached{read_rtt(fields), fields.text("problem", k_reason_max)};
  if (reached.rtt.has_value() != reached.problem.empty()) fields.fail("is neither a time nor a problem");
  return reached;
}
ReachReply read_reach_reply(const Fields& fields) {
  return {fields.list("targets", k_link_targets_max, &read_reached)};
}
}  // namespace

std::string encode_ping(const PingMessage& ping) { return dump({{"op", "link_ping"}, {"nonce", ping.nonce}}); }
std::string encode_pong(const PingMessage& ping) { return dump({{"nonce", ping.nonce}}); }
std::string encode(const SinkRequest& request) { return dump({{"op", "link_sink"}, {"bytes", request.bytes}}); }
std::string encode(const SinkReply& reply) { return dump({{"bytes", reply.bytes}, {"tally", reply.tally}}); }
std::string encode(const SourceRequest& request) {
  return dump({{"op", "link_source"}, {"bytes", request.bytes}, {"seed", request.seed}});
}
std::string encode(const ListenRequest& request) {
  json value{{"op", "link_listen"},
             {"token", to_hex(request.token)},
             {"accept_ms", to_ms(request.accept_max)},
             {"time_ms", to_ms(request.time_max)},
             {"bytes_max", request.bytes_max}};
  if (request.port != 0) value["port"] = request.port;
  return dump(value);
}
std::string encode(const ListenReply& reply) {
  json value{{"port", reply.port}, {"addresses", reply.addresses}};
  if (!reply.interfaces.empty()) value["interfaces"] = reply.interfaces;
  if (reply.ephemeral_first != 0) value["ephemeral_first"] = reply.ephemeral_first;
  return dump(value);
}
std::string encode(const ConnectRequest& request) {
  return dump({{"op", "link_connect"},
               {"token", to_hex(request.token)},
               {"addresses", request.addresses},
               {"port", request.port},
               {"time_ms", to_ms(request.time_max)},
               {"bytes_max", request.bytes_max}});
}

std::string encode(const LinkResult& result) {
  json failures = json::array();
  for (const LinkFailure& failure : result.failures)
    failures.push_back({{"address", failure.address}, {"reason", failure.reason.substr(0, k_reason_max)}});
  json value{{"connected", result.connected},
             {"address", result.address},
             {"bytes_sent", result.bytes_sent},
             {"bytes_received", result.bytes_received},
             {"failures", std::move(failures)}};
  if (result.rtt) value["rtt_us"] = to_us(*result.rtt);
  if (result.bits_per_second) value["bits_per_second"] = *result.bits_per_second;
  return dump(value);
}

std::string encode(const ReachRequest& request) {
  json targets = json::array();
  for (const ReachRequest::Target& target : request.targets)
    targets.push_back({{"address", target.address}, {"port", target.port}});
  return dump({{"op", "link_reach"}, {"targets", std::move(targets)}, {"tries", request.tries}});
}
std::string encode(const ReachReply& reply) {
  json targets = json::array();
  for (const ReachReply::Reached& reached : reply.targets) {
    json one{{"problem", reached.problem.substr(0, k_reason_max)}};
    if (reached.rtt) one["rtt_us"] = to_us(*reached.rtt);
    targets.push_back(std::move(one));
  }
  return dump({{"targets", std::move(targets)}});
}

Result<PingMessage> parse_ping(std::string_view text) { return parse_request(text, "link_ping", &read_nonce); }
Result<PingMessage> parse_pong(std::string_view text) { return parse_message(text, "link_ping reply", &read_nonce); }
Result<SinkRequest> parse_sink(std::string_view text) { return parse_request(text, "link_sink", &read_sink); }
Result<SinkReply> parse_sink_reply(std::string_view text) {
  return parse_message(text, "link_sink reply", &read_sink_reply);
}
Result<SourceRequest> parse_source(std::string_view text) { return parse_request(text, "link_source", &read_source); }
Result<ListenRequest> parse_listen(std::string_view text) { return parse_request(text, "link_listen", &read_listen); }
Result<ListenReply> parse_listen_reply(std::string_view text) {
  return parse_message(text, "link_listen reply", &read_listen_reply);
}
Result<ConnectRequest> parse_connect(std::string_view text) {
  return parse_request(text, "link_connect", &read_connect);
}
Result<LinkResult> parse_link_result(std::string_view text) { return parse_message(text, "link result", &read_result); }
Result<ReachRequest> parse_reach(std::string_view text) { return parse_request(text, "link_reach", &read_reach); }
Result<ReachReply> parse_reach_reply(std::string_view text) {
  return parse_message(text, "link_reach reply", &read_reach_reply);
}

}  // namespace gridctl::wire
