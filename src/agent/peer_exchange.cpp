// SPDX-License-Identifier: Apache-2.0
#include "agent/peer_exchange.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "crypto/sha256.hpp"
#include "os/random.hpp"
#include "probe/netperf.hpp"

namespace gridctl::agent {

namespace {

constexpr std::string_view k_magic = "GCLINK1\n";
constexpr std::size_t k_nonce = 16;  // bytes
constexpr int k_pings = 10;
constexpr std::size_t k_messages_max = 64;   // of one drive: pings, steps, the end
constexpr std::size_t k_piece = 256 * 1024;  // bytes read or written at a time

enum class Kind : std::uint8_t { ping = 'P', data = 'D', tally = 'T', done = 'X' };
constexpr std::size_t k_message = 9;  // kind and a number, big endian

Result<void> say(PeerStream& peer, Kind kind, std::uint64_t number) {
  std::array<std::byte, k_message> message;
  message[0] = static_cast<std::byte>(kind);
  for (std::size_t i = 0; i < 8; ++i) message[1 + i] = static_cast<std::byte>(number >> (56 - 8 * i));
  return peer.write(message);
}

struct Message {
  Kind kind;
  std::uint64_t number;
};
Result<Message> hear(PeerStream& peer) {
  std::array<std::byte, k_message> bytes;
  TRY(peer.read(bytes));
  Message message{static_cast<Kind>(bytes[0]), 0};
  for (std::size_t i = 1; i < k_message; ++i)
    message.number = message.number << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return message;
}

Error not_agreed(const char* what) { return make_error(Code::protocol_violation, std::string("the peer ") + what); }

Digest proof(const Digest& token, std::string_view role, ByteView first, ByteView second) {
  Bytes message(as_bytes(role).begin(), as_bytes(role).end());
  message.insert(message.end(), first.begin(), first.end());
  message.insert(message.end(), second.begin(), second.end());
  return crypto::hmac_sha256(token.bytes, message);
}

Result<void> check_proof(ByteView given, const Digest& expected) {
  if (!crypto::equal_constant_time(given, expected.bytes)) return not_agreed("does not have the token");
  return {};
}

Result<Duration> ping(PeerStream& peer) {
  const std::uint64_t nonce = os::random_u64();
  const BootTime began = peer.clock().boot();
  TRY(say(peer, Kind::ping, nonce));
  TRY_ASSIGN(const Message pong, hear(peer));
  if (pong.kind != Kind::ping || pong.number != nonce) return not_agreed("answered a ping with something else");
  return peer.clock().boot() - began;
}

// Sends this many bytes and waits for the proof that they arrived.
Result<Duration> send_step(PeerStream& peer, std::uint64_t bytes) {
  probe::Noise noise(os::random_u64());
  probe::Tally tally;
  Bytes piece(k_piece);
  const BootTime began = peer.clock().boot();
  TRY(say(peer, Kind::data, bytes));
  for (std::uint64_t left = bytes; left > 0;) {
    const std::span<std::byte> part = std::span(piece).first(std::min<std::uint64_t>(left, k_piece));
    noise.fill(part);
    tally.add(part);
    TRY(peer.write(part));
    left -= part.size();
  }
  TRY_ASSIGN(const Message receipt, hear(peer));
  if (receipt.kind != Kind::tally || receipt.number != tally.value())
    return not_agreed("cannot prove that it received what was sent");
  return peer.clock().boot() - began;
}

Result<std::uint64_t> receive_step(PeerStream& peer, std::uint64_t bytes) {
  probe::Tally tally;
  Bytes piece(k_piece);
  for (std::uint64_t left = bytes; left > 0;) {
    const std::span<std::byte> part = std::span(piece).first(std::min<std::uint64_t>(left, k_piece));
    TRY(peer.read(part));
    tally.add(part);
    left -= part.size();
  }
  TRY(say(peer, Kind::tally, tally.value()));
  return bytes;
}

}  // namespace

Result<void> prove_as_connector(PeerStream& peer, const Digest& token) {
  const Bytes mine = os::random_bytes(k_nonce);
  TRY(peer.write(as_bytes(k_magic)));
  TRY(peer.write(mine));
  Bytes theirs(k_nonce);
  TRY(peer.read(theirs));
  Digest given;
  TRY(peer.read(given.bytes));
  TRY(check_proof(given.bytes, proof(token, "listener", mine, theirs)));
  return peer.write(proof(token, "connector", theirs, mine).bytes);
}

std::size_t ListenerProof::wants() const {
  constexpr std::size_t k_first = k_magic.size() + k_nonce, k_all = k_first + sizeof(Digest::bytes);
  return (own_nonce_.empty() ? k_first : k_all) - heard_.size();
}

Result<void> ListenerProof::take(ByteView bytes, Bytes& answer) {
  heard_.insert(heard_.end(), bytes.begin(), bytes.end());
  const ByteView heard = heard_, magic = heard.first(std::min(heard.size(), k_magic.size()));
  if (!k_magic.starts_with(as_text(magic))) return not_agreed("is not an agent");
  if (wants() > 0) return {};
  const ByteView theirs = heard.subspan(k_magic.size(), k_nonce);
  if (!own_nonce_.empty())
    return check_proof(heard.last(sizeof(Digest::bytes)), proof(token_, "connector", own_nonce_, theirs));
  own_nonce_ = os::random_bytes(k_nonce);
  answer.insert(answer.end(), own_nonce_.begin(), own_nonce_.end());
  const Digest mine = proof(token_, "listener", theirs, own_nonce_);
  answer.insert(answer.end(), mine.bytes.begin(), mine.bytes.end());
  return {};
}

Result<void> prove_as_listener(PeerStream& peer, const Digest& token) {
  ListenerProof proof_of_it(token);
  while (proof_of_it.wants() > 0) {
    Bytes bytes(proof_of_it.wants()), answer;
    TRY(peer.read(bytes));
    TRY(proof_of_it.take(bytes, answer));
    TRY(peer.write(answer));
  }
  return {};
}

Result<Driven> drive(PeerStream& peer, std::uint64_t bytes_max, Duration time_max) {
  Driven driven;
  probe::RttWindow window;
  const BootTime over = peer.clock().boot() + time_max;
  for (int i = 0; i < k_pings && peer.clock().boot() < over; ++i) {
    TRY_ASSIGN(const Duration rtt, ping(peer));
    window.add(rtt);
  }
  driven.rtt = window.smallest().value_or(Duration{});
  probe::RateSteps steps(bytes_max, over - peer.clock().boot(), driven.rtt);
  while (const std::optional<std::uint64_t> bytes = steps.next()) {
    TRY_ASSIGN(const Duration elapsed, send_step(peer, *bytes));
    steps.took(*bytes, elapsed);
  }
  driven.bits_per_second = steps.bits_per_second();
  driven.bytes = steps.bytes();
  TRY(say(peer, Kind::done, 0));
  return driven;
}

Result<std::uint64_t> follow(PeerStream& peer, std::uint64_t bytes_max) {
  std::uint64_t received = 0;
  for (std::size_t i = 0; i < k_messages_max; ++i) {
    TRY_ASSIGN(const Message message, hear(peer));
    if (message.kind == Kind::done) return received;
    if (message.kind == Kind::ping) {
      TRY(say(peer, Kind::ping, message.number));
      continue;
    }
    if (message.kind != Kind::data || message.number == 0 || message.number > bytes_max - received)
      return not_agreed("sends more than was agreed, or something unknown");
    TRY_ASSIGN(const std::uint64_t bytes, receive_step(peer, message.number));
    received += bytes;
  }
  return not_agreed("does not finish");
}

}  // namespace gridctl::agent
