// SPDX-License-Identifier: Apache-2.0
#include "agent/network.hpp"

#include <algorithm>
#include <sstream>

#include "agent/peer_exchange.hpp"
#include "os/address.hpp"
#include "probe/netperf.hpp"
#include "transfer/stream.hpp"

namespace gridctl::agent {

namespace {

constexpr Duration k_step_max = std::chrono::seconds{30};            // for one step of sink or source to move on
constexpr Duration k_stranger_max = std::chrono::seconds{1};         // to prove the token
constexpr Duration k_address_max = std::chrono::milliseconds{1500};  // for one of several addresses to answer
constexpr Duration k_reach_max = std::chrono::milliseconds{1500};    // for a landmark to answer
constexpr std::int64_t k_day_ms = 86'400'000;
constexpr std::uint16_t k_peer_port_min = 1024;  // peers listen where ordinary users may

// A controller must not make this host connect to itself or to its cloud's own services.
Result<void> check_target(const std::string& address, std::uint16_t port, std::uint16_t port_min) {
  const os::AddressKind kind = os::address_kind(address);
  if (kind != os::AddressKind::site && kind != os::AddressKind::internet)
    return make_error(Code::refused, "not an address of another host");
  if (port < port_min) return make_error(Code::refused, "not a port that hosts use for this");
  return {};
}

// Holds the amount spent today: "DAY BYTES CONNECTS". A damaged file counts as a new day's.
struct Spent {
  std::int64_t day = 0;
  std::uint64_t bytes = 0, connects = 0;
};
Spent read_spent(const os::Path& file, std::int64_t today) {
  Spent spent{today, 0, 0}, stored;
  if (const auto text = os::read_file(file, 256)) {
    std::istringstream words(*text);
    if (words >> stored.day >> stored.bytes >> stored.connects && stored.day == today) spent = stored;
  }
  return spent;
}

Result<void> write_spent(const os::Path& file, const Spent& spent) {
  return os::write_file_atomically(file, std::to_string(spent.day) + " " + std::to_string(spent.bytes) + " " +
                                             std::to_string(spent.connects) + "\n");
}

wire::LinkResult result_of(const PeerStream& peer, const Driven& driven, std::uint64_t received) {
  wire::LinkResult result;
  result.connected = true;
  result.address = peer.address();
  result.rtt = driven.rtt;
  result.bits_per_second = driven.bits_per_second;
  result.bytes_sent = driven.bytes;
  result.bytes_received = received;
  return result;
}

// Lets the connector measure first. Each side gets half of the remaining time.
Result<wire::LinkResult> exchange_as_connector(PeerStream& peer, std::uint64_t bytes_max, BootTime over) {
  TRY_ASSIGN(const Driven driven, drive(peer, bytes_max, (over - peer.clock().boot()) / 2));
  TRY_ASSIGN(const std::uint64_t received, follow(peer, bytes_max));
  return result_of(peer, driven, received);
}
Result<wire::LinkResult> exchange_as_listener(PeerStream& peer, std::uint64_t bytes_max, BootTime over) {
  TRY_ASSIGN(const std::uint64_t received, follow(peer, bytes_max));
  TRY_ASSIGN(const Driven driven, drive(peer, bytes_max, (over - peer.clock().boot()) * 3 / 4));
  return result_of(peer, driven, received);
}

// Waits for the one peer that has the token.
Result<PeerStream> await_peer(PeerListener& listener, const Digest& token, BootTime over, const os::Clock& clock) {
  for (std::size_t strangers = 0; strangers < k_link_strangers_max; ++strangers) {
    TRY_ASSIGN(std::optional<PeerStream> peer, listener.accept(over, clock));
    if (!peer) return make_error(Code::timed_out, "no other side connected in time");
    peer->set_deadline(std::min(over, clock.boot() + k_stranger_max));
    if (prove_as_listener(*peer, token)) return *std::move(peer);
  }
  return make_error(Code::refused, "only unknown peers connected");
}

}  // namespace

bool Links::serves(std::string_view operation) { return operation.starts_with("link_"); }

Result<void> Links::reply(const wire::Frame& request, std::string payload) {
  return link_.send({wire::FrameKind::reply, request.stream, std::move(payload)}, clock_.boot() + k_step_max);
}
Result<void> Links::refuse(const wire::Frame& request, const Error& error) {
  return reply(request, wire::error_payload(error));
}

Result<void> Links::handle(const wire::Frame& request) {
  const std::string operation = wire::request_name(request.payload);
  if (operation == wire::k_link_ping) {
    TRY_ASSIGN(const wire::PingMessage ping, wire::parse_ping(request.payload));
    return reply(request, wire::encode_pong(ping));
  }
  if (operation == wire::k_link_sink) return sink(request);
  if (operation == wire::k_link_source) return source(request);
  if (operation == wire::k_link_listen) return listen(request);
  if (operation == wire::k_link_connect) {
    TRY_ASSIGN(const wire::ConnectRequest wanted, wire::parse_connect(request.payload));
    const Result<wire::LinkResult> result = connect(wanted);
    return result ? reply(request, wire::encode(*result)) : refuse(request, result.error());
  }
  if (operation == wire::k_link_reach) {
    TRY_ASSIGN(const wire::ReachRequest wanted, wire::parse_reach(request.payload));
    const Result<wire::ReachReply> result = reach(wanted);
    return result ? reply(request, wire::encode(*result)) : refuse(request, result.error());
  }
  return refuse(request, make_error(Code::unsupported, "unknown operation on links"));
}

// --- With the controller, over its own connection ------------------------------------------------------------------

Result<void> Links::sink(const wire::Frame& request) {
  TRY_ASSIGN(const wire::SinkRequest wanted, wire::parse_sink(request.payload));
  probe::Tally tally;
  std::uint64_t received = 0;
  for (;;) {
    TRY_ASSIGN(const wire::Frame frame, link_.receive(clock_.boot() + k_step_max));
    if (frame.stream != request.stream)
      return make_error(Code::protocol_violation, "another operation interrupted this one");
    if (frame.kind == wire::FrameKind::end) break;
    if (frame.kind != wire::FrameKind::data || frame.payload.size() > wanted.bytes - received)
      return make_error(Code::protocol_violation, "received more data than announced");
    received += frame.payload.size();
    tally.add(as_bytes(frame.payload));
  }
  return reply(request, wire::encode(wire::SinkReply{received, tally.value()}));
}

Result<void> Links::source(const wire::Frame& request) {
  TRY_ASSIGN(const wire::SourceRequest wanted, wire::parse_source(request.payload));
  TRY(reply(request, "{}"));
  probe::Noise noise(wanted.seed);
  Bytes piece;
  for (std::uint64_t left = wanted.bytes; left > 0; left -= piece.size()) {
    piece.resize(std::min<std::uint64_t>(left, transfer::k_data_frame));
    noise.fill(piece);
    TRY(link_.send({wire::FrameKind::data, request.stream, std::string(as_text(piece))}, clock_.boot() + k_step_max));
  }
  return link_.send({wire::FrameKind::end, request.stream, wire::encode(wire::EndRecord{wanted.bytes, std::nullopt})},
                    clock_.boot() + k_step_max);
}

// --- With other hosts ----------------------------------------------------------------------------------------------

// The amount is counted before it is spent: an agent that is killed in the meantime has not got it for nothing.
Result<void> Links::spend(std::uint64_t bytes, std::uint64_t connects) {
  Spent spent = read_spent(home_ / "links", clock_.wall().ms / k_day_ms);
  spent.bytes += bytes;
  spent.connects += connects;
  if (spent.bytes > k_link_bytes_day || spent.connects > k_link_connects_day)
    return make_error(Code::refused, "this host has measured enough links for today");
  return write_spent(home_ / "links", spent);
}

void Links::give_back(std::uint64_t bytes) {
  Spent spent = read_spent(home_ / "links", clock_.wall().ms / k_day_ms);
  spent.bytes -= std::min(spent.bytes, bytes);
  (void)write_spent(home_ / "links", spent);  // then it stays spent: the careful side
}

namespace {
Result<os::FileLock> one_at_a_time(const os::Path& home) {
  TRY_ASSIGN(std::optional<os::FileLock> lock, os::FileLock::try_acquire(home / "links.lock"));
  if (!lock) return make_error(Code::busy, "this host is measuring another link");
  return *std::move(lock);
}
}  // namespace

Result<void> Links::listen(const wire::Frame& request) {
  TRY_ASSIGN(const wire::ListenRequest wanted, wire::parse_listen(request.payload));
  const BootTime over = clock_.boot() + wanted.time_max;
  const auto lock = one_at_a_time(home_);
  if (!lock) return refuse(request, lock.error());
  if (const auto spent = spend(2 * wanted.bytes_max, 1); !spent) return refuse(request, spent.error());
  if (wanted.port != 0 && wanted.port < k_peer_port_min)
    return refuse(request, make_error(Code::refused, "not a port that hosts use for this"));
  std::optional<PeerListener> listener;
  if (auto opened = PeerListener::open(wanted.port)) listener.emplace(*std::move(opened));
  else return refuse(request, opened.error());
  wire::ListenReply where{listener->port(), os::own_addresses(), {}, os::ephemeral_port_first()};
  if (where.addresses.size() > wire::k_link_addresses_max) where.addresses.resize(wire::k_link_addresses_max);
  for (const std::string& address : where.addresses) where.interfaces.push_back(os::interface_of(address));
  TRY(reply(request, wire::encode(where)));

  const auto measured = [&]() -> Result<wire::LinkResult> {
    TRY_ASSIGN(PeerStream peer,
               await_peer(*listener, wanted.token, std::min(over, clock_.boot() + wanted.accept_max), clock_));
    listener.reset();  // the token has been used
    peer.set_deadline(over);
    return exchange_as_listener(peer, wanted.bytes_max, over);
  }();
  listener.reset();
  give_back(2 * wanted.bytes_max - (measured ? measured->bytes_sent + measured->bytes_received : 0));
  wire::EndRecord end;
  if (measured) {
    const std::string payload = wire::encode(*measured);
    end.bytes = payload.size();
    TRY(link_.send({wire::FrameKind::data, request.stream, payload}, clock_.boot() + k_step_max));
  } else {
    end.error = measured.error();
  }
  return link_.send({wire::FrameKind::end, request.stream, wire::encode(end)}, clock_.boot() + k_step_max);
}

Result<wire::LinkResult> Links::connect(const wire::ConnectRequest& request) {
  const BootTime over = clock_.boot() + request.time_max;
  TRY_ASSIGN(const os::FileLock lock, one_at_a_time(home_));
  TRY(spend(2 * request.bytes_max, request.addresses.size()));
  wire::LinkResult failed;
  for (const std::string& address : request.addresses) {
    const auto attempt = [&]() -> Result<wire::LinkResult> {
      TRY(check_target(address, request.port, k_peer_port_min));
      const BootTime patience = std::min(over, clock_.boot() + k_address_max);
      TRY_ASSIGN(Connected connected, connect_numeric(address, request.port, patience, clock_));
      PeerStream peer(std::move(connected.socket), address, std::min(over, clock_.boot() + k_stranger_max), clock_);
      TRY(prove_as_connector(peer, request.token));
      peer.set_deadline(over);
      return exchange_as_connector(peer, request.bytes_max, over);
    };
    Result<wire::LinkResult> result = attempt();
    if (result) {
      give_back(2 * request.bytes_max - result->bytes_sent - result->bytes_received);
      result->failures = failed.failures;
      return result;
    }
    failed.failures.push_back({address, result.error().message});
  }
  give_back(2 * request.bytes_max);
  return failed;
}

Result<wire::ReachReply> Links::reach(const wire::ReachRequest& request) {
  TRY_ASSIGN(const os::FileLock lock, one_at_a_time(home_));
  TRY(spend(0, request.targets.size() * request.tries));
  const BootTime over = clock_.boot() + wire::k_link_time_max;
  wire::ReachReply reply;
  for (const wire::ReachRequest::Target& target : request.targets) {
    wire::ReachReply::Reached reached;
    Result<void> allowed = check_target(target.address, target.port, 1);
    for (std::uint32_t i = 0; allowed && i < request.tries; ++i) {
      auto connected =
          connect_numeric(target.address, target.port, std::min(over, clock_.boot() + k_reach_max), clock_);
      if (connected) reached.rtt = std::min(reached.rtt.value_or(connected->elapsed), connected->elapsed);
      else allowed = std::move(connected).error();
    }
    if (!reached.rtt) reached.problem = allowed.error().message;
    reply.targets.push_back(std::move(reached));
  }
  return reply;
}

}  // namespace gridctl::agent
