// SPDX-License-Identifier: Apache-2.0
#include "control/measure/network.hpp"

#include <algorithm>
#include <memory>

#include "base/text.hpp"
#include "os/address.hpp"
#include "os/random.hpp"
#include "probe/netperf.hpp"
#include "transfer/stream.hpp"

namespace gridctl::control {

namespace {

using LinkPtr = std::unique_ptr<wire::Link>;
using transfer::Conversation;
using wire::FrameKind;

constexpr Duration k_connect_limit = std::chrono::seconds{20};       // login, agent upload, hello
constexpr Duration k_silence = std::chrono::seconds{12};     // between two frames of a measurement
constexpr Duration k_direction = std::chrono::seconds{8};    // of one direction of a link from here
constexpr Duration k_pair_time = std::chrono::seconds{10};   // of an exchange between two hosts
constexpr Duration k_pair_accept = std::chrono::seconds{7};  // for the connector to try all addresses
constexpr int k_pings = 5;
constexpr std::size_t k_addresses_max = 4;  // of one host, at 1.5 s each
constexpr std::size_t k_frame = transfer::k_data_frame;
constexpr std::uint32_t k_reach_tries = 3;

Result<LinkPtr> reach(const HostAccess& place) {
  return place.open(k_connect_limit);
}

Result<std::string> ask(Conversation& with, std::uint32_t stream, std::string payload) {
  TRY(with.send(FrameKind::request, stream, std::move(payload)));
  return with.reply(stream);
}

Error gave_way() { return make_error(Code::cancelled, "the measurement was stopped for a transfer"); }

class HereMeter {
 public:
  HereMeter(Conversation& with, const GiveWay& give_way, std::uint64_t bytes_max)
      : with_(with), give_way_(give_way), bytes_max_(bytes_max) {}

  Result<HereMeasured> run() {
    probe::RttWindow window;
    for (int i = 0; i < k_pings; ++i) {
      TRY_ASSIGN(const Duration rtt, ping());
      window.add(rtt);
    }
    measured_.rtt = *window.smallest();
    TRY_ASSIGN(measured_.to_host, rate([this](std::uint64_t bytes) { return upload(bytes); }));
    TRY_ASSIGN(measured_.from_host, rate([this](std::uint64_t bytes) { return download(bytes); }));
    return measured_;
  }

 private:
  template <class Step>
  Result<std::optional<double>> rate(Step step) {
    probe::RateSteps steps(bytes_max_, k_direction, measured_.rtt);
    while (const std::optional<std::uint64_t> bytes = steps.next()) {
      const BootTime began = with_.clock.boot();
      TRY(step(*bytes));
      steps.took(*bytes, with_.clock.boot() - began);
      measured_.bytes += *bytes;
    }
    return steps.bits_per_second();
  }

  // The complete time counts: a host that wants to look near could claim to have been busy. Because of the nonce, it
  // cannot answer before it was asked.
  Result<Duration> ping() {
    const std::uint64_t nonce = os::random_u64();
    const BootTime began = with_.clock.boot();
    TRY_ASSIGN(const std::string payload, ask(with_, ++stream_, wire::encode_ping({nonce})));
    TRY_ASSIGN(const wire::PingMessage pong, wire::parse_pong(payload));
    if (pong.nonce != nonce) return make_error(Code::protocol_violation, "the agent answered another ping");
    return with_.clock.boot() - began;
  }

  Result<void> upload(std::uint64_t bytes) {
    const std::uint32_t stream = ++stream_;
    TRY(with_.send(FrameKind::request, stream, wire::encode(wire::SinkRequest{bytes})));
    probe::Noise noise(os::random_u64());
    probe::Tally tally;
    Bytes piece;
    for (std::uint64_t left = bytes; left > 0; left -= piece.size()) {
      if (give_way_()) return gave_way();
      piece.resize(std::min<std::uint64_t>(left, k_frame));
      noise.fill(piece);
      tally.add(piece);
      TRY(with_.send(FrameKind::data, stream, std::string(as_text(piece))));
    }
    TRY(with_.send(FrameKind::end, stream, wire::encode(wire::EndRecord{bytes, std::nullopt})));
    TRY_ASSIGN(const std::string payload, with_.reply(stream));
    TRY_ASSIGN(const wire::SinkReply receipt, wire::parse_sink_reply(payload));
    if (receipt.bytes == bytes && receipt.tally == tally.value()) return {};
    return make_error(Code::protocol_violation, "the agent cannot prove that it received what was sent");
  }

  Result<void> download(std::uint64_t bytes) {
    const std::uint32_t stream = ++stream_;
    const std::uint64_t seed = os::random_u64();
    TRY(ask(with_, stream, wire::encode(wire::SourceRequest{bytes, seed})));
    probe::Noise noise(seed);
    for (std::uint64_t left = bytes;;) {
      if (give_way_()) return gave_way();
      TRY_ASSIGN(const wire::Frame frame, with_.link.receive(with_.deadline()));
      if (frame.stream == stream && frame.kind == FrameKind::end) {
        TRY_ASSIGN(const wire::EndRecord end, wire::parse_end(frame.payload));
        if (end.error) return *end.error;
        if (left == 0) return {};
        return make_error(Code::protocol_violation, "the agent sent less data than requested");
      }
      if (frame.stream != stream || frame.kind != FrameKind::data || frame.payload.size() > left ||
          !noise.matches(as_bytes(frame.payload)))
        return make_error(Code::protocol_violation, "the agent sent something other than the requested data");
      left -= frame.payload.size();
    }
  }

  Conversation& with_;
  const GiveWay& give_way_;
  const std::uint64_t bytes_max_;
  HereMeasured measured_;
  std::uint32_t stream_ = 0;
};

std::string reasons(const std::vector<wire::LinkFailure>& failures) {
  std::string text;
  for (const wire::LinkFailure& failure : failures)
    text += (text.empty() ? "" : "; ") + sanitize(failure.address, 64) + ": " + sanitize(failure.reason, 200);
  return text.empty() ? "no known address to connect to" : text;
}

struct OneWay {
  wire::LinkResult connector, listener;
  wire::ListenReply listening;
};
// Uses a separate connection to each host, so that one can be told something while the other waits.
Result<OneWay> connect_one_way(const HostAccess& connector, const HostAccess& listener, std::uint64_t bytes_max,
                               std::uint16_t port = 0) {
  TRY_ASSIGN(const LinkPtr to_listener, reach(listener));
  TRY_ASSIGN(const LinkPtr to_connector, reach(connector));
  Conversation with_listener{*to_listener, *listener.clock, k_silence};
  Conversation with_connector{*to_connector, *connector.clock, k_silence};
  const Digest token = os::random_digest();

  TRY_ASSIGN(const std::string where,
             ask(with_listener, 1, wire::encode(wire::ListenRequest{token, k_pair_accept, k_pair_time, bytes_max, port})));
  TRY_ASSIGN(const wire::ListenReply listening, wire::parse_listen_reply(where));
  const std::vector<std::string> addresses = usable_addresses(
      listener.net->addresses(listener.provider, listener.clock->boot() + k_resolve), listening.addresses);
  TRY_ASSIGN(const std::string told,
             ask(with_connector, 1,
                 wire::encode(wire::ConnectRequest{token, addresses, listening.port, k_pair_time, bytes_max})));
  OneWay found;
  found.listening = listening;
  TRY_ASSIGN(found.connector, wire::parse_link_result(told));
  Result<Bytes> data = with_listener.data(1, wire::k_frame_max);  // also where nobody came: then it has ended
  if (!found.connector.connected) return found;
  if (!data) return data.error();
  TRY_ASSIGN(found.listener, wire::parse_link_result(as_text(*data)));
  return found;
}

void note(PairMeasured::Contact& contact, const OneWay& way) {
  contact.works = way.connector.connected && way.listener.connected;
  if (contact.works) contact.address = sanitize(way.connector.address, 64);
  else contact.reason = reasons(way.connector.failures);
}

}  // namespace

std::vector<std::string> usable_addresses(const std::vector<std::string>& ours,
                                          const std::vector<std::string>& claimed) {
  std::vector<std::string> usable;
  const auto add = [&](const std::string& address, os::AddressKind kind, bool also_internet) {
    const bool good = kind == os::AddressKind::site || (also_internet && kind == os::AddressKind::internet);
    if (good && usable.size() < k_addresses_max && std::find(usable.begin(), usable.end(), address) == usable.end())
      usable.push_back(address);
  };
  for (const std::string& address : ours) add(address, os::address_kind(address), true);
  for (const std::string& address : claimed) add(address, os::address_kind(address), false);
  return usable;
}

Result<HereMeasured> measure_here(const HostAccess& place, const GiveWay& give_way, std::uint64_t bytes_max) {
  TRY_ASSIGN(const LinkPtr link, reach(place));
  Conversation with{*link, *place.clock, k_silence};
  return HereMeter(with, give_way, bytes_max).run();
}

Result<PairMeasured> measure_pair(const HostAccess& a, const HostAccess& b, std::uint64_t bytes_max) {
  PairMeasured measured;
  TRY_ASSIGN(const OneWay forth, connect_one_way(a, b, bytes_max));
  note(measured.a_to_b, forth);
  // The rates are known by now; only whether b may connect is left to learn.
  TRY_ASSIGN(const OneWay back, connect_one_way(b, a, measured.a_to_b.works ? 0 : bytes_max));
  note(measured.b_to_a, back);
  const auto smaller = [](std::optional<Duration>& into, const std::optional<Duration>& rtt) {
    if (rtt && (!into || *rtt < *into)) into = rtt;
  };
  for (const auto* way : {&forth, &back}) {
    const bool a_connects = way == &forth;
    const wire::LinkResult& of_a = a_connects ? way->connector : way->listener;
    const wire::LinkResult& of_b = a_connects ? way->listener : way->connector;
    if (!of_a.connected || !of_b.connected) continue;
    smaller(measured.rtt_a, of_a.rtt);
    smaller(measured.rtt_b, of_b.rtt);
    if (of_a.bits_per_second) measured.rate_ab = of_a.bits_per_second;
    if (of_b.bits_per_second) measured.rate_ba = of_b.bits_per_second;
    measured.bytes += of_a.bytes_sent + of_b.bytes_sent;
  }
  return measured;
}

Result<PortProof> prove_port(const HostAccess& from, const HostAccess& to, std::uint16_t port,
                             std::uint64_t bytes_max) {
  TRY_ASSIGN(const OneWay way, connect_one_way(from, to, bytes_max, port));
  if (port != 0 && way.listening.port != port)
    return make_error(Code::unsupported, "the agent of " + to.provider.name.value + " cannot listen on a chosen port");
  PortProof proof;
  note(proof.contact, way);
  proof.ephemeral_first = way.listening.ephemeral_first;
  if (!proof.contact.works) return proof;
  proof.rtt = way.connector.rtt;
  proof.rate_there = way.connector.bits_per_second;
  proof.rate_back = way.listener.bits_per_second;
  const auto& addresses = way.listening.addresses;
  const auto at = std::find(addresses.begin(), addresses.end(), way.connector.address) - addresses.begin();
  if (static_cast<std::size_t>(at) < way.listening.interfaces.size())
    proof.interface = sanitize(way.listening.interfaces[static_cast<std::size_t>(at)], 32);
  return proof;
}

Result<wire::ReachReply> measure_landmarks(const HostAccess& place,
                                           const std::vector<wire::ReachRequest::Target>& targets) {
  TRY_ASSIGN(const LinkPtr link, reach(place));
  Conversation with{*link, *place.clock, k_silence};
  TRY_ASSIGN(const std::string payload, ask(with, 1, wire::encode(wire::ReachRequest{targets, k_reach_tries})));
  TRY_ASSIGN(wire::ReachReply reply, wire::parse_reach_reply(payload));
  if (reply.targets.size() != targets.size())
    return make_error(Code::protocol_violation, "the agent answered for a different number of landmarks");
  for (wire::ReachReply::Reached& reached : reply.targets) reached.problem = sanitize(reached.problem, 200);
  return reply;
}

}  // namespace gridctl::control
