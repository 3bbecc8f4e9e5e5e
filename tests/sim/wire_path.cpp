// SPDX-License-Identifier: Apache-2.0
#include "wire_path.hpp"

#include "wire/frame.hpp"

namespace gridctl::sim {

namespace {

using control::Answer;
using control::Request;

// Through the encoder of one side and the decoder of the other, in pieces.
Result<std::string> carry(World& world, wire::FrameKind kind, std::string payload) {
  std::string bytes = wire::encode(wire::Frame{kind, 7, std::move(payload)});
  if (!world.healed && world.rng.chance(world.options.bad_bytes)) {
    char& hit = bytes[static_cast<std::size_t>(world.rng.below(bytes.size()))];
    hit = static_cast<char>(hit ^ static_cast<char>(1u << world.rng.below(8)));
  }
  wire::Decoder decoder(false);
  while (!bytes.empty()) {
    const std::size_t piece = 1 + static_cast<std::size_t>(world.rng.below(bytes.size()));
    decoder.feed(as_bytes(std::string_view(bytes).substr(0, piece)));
    bytes.erase(0, piece);
  }
  TRY_ASSIGN(const std::optional<wire::Frame> frame, decoder.next());
  if (!frame) return make_error(Code::timed_out, "no whole frame came");
  return frame->payload;
}

Result<Request> parse(const Request& like, const std::string& payload) {
  if (std::holds_alternative<wire::PrepareRequest>(like)) {
    TRY_ASSIGN(auto request, wire::parse_prepare(payload));
    return Request{std::move(request)};
  }
  if (std::holds_alternative<wire::StartRequest>(like)) {
    TRY_ASSIGN(auto request, wire::parse_start(payload));
    return Request{std::move(request)};
  }
  if (std::holds_alternative<wire::StopRequest>(like)) {
    TRY_ASSIGN(auto request, wire::parse_stop(payload));
    return Request{std::move(request)};
  }
  if (std::holds_alternative<wire::CleanRequest>(like)) {
    TRY_ASSIGN(auto request, wire::parse_clean(payload));
    return Request{std::move(request)};
  }
  TRY_ASSIGN(auto request, wire::parse_poll(payload));
  return Request{std::move(request)};
}

std::string encode_answer(const Result<Answer>& answer) {
  if (!answer) return wire::error_payload(answer.error());
  if (const auto* reply = std::get_if<wire::PrepareReply>(&*answer)) return wire::encode(*reply);
  if (const auto* reply = std::get_if<wire::StartReply>(&*answer)) return wire::encode(*reply);
  if (const auto* reply = std::get_if<wire::PollReply>(&*answer)) return wire::encode(*reply);
  return "{}";
}

Result<Answer> parse_answer(const Request& asked, const std::string& payload) {
  if (const std::optional<Error> error = wire::payload_error(payload)) return *error;
  if (std::holds_alternative<wire::PrepareRequest>(asked)) {
    TRY_ASSIGN(auto reply, wire::parse_prepare_reply(payload));
    return Answer{std::move(reply)};
  }
  if (std::holds_alternative<wire::PollRequest>(asked)) {
    TRY_ASSIGN(auto reply, wire::parse_poll_reply(payload));
    return Answer{std::move(reply)};
  }
  return Answer{control::Ack{}};
}

}  // namespace

Result<Answer> serve_by_wire(World& world, Host& host, int laptop, const Request& question) {
  if (!world.options.encode) return host.serve(laptop, question);
  const std::string payload = std::visit([](const auto& request) { return wire::encode(request); }, question);
  const Result<std::string> there = carry(world, wire::FrameKind::request, payload);
  if (!there) {  // the agent drops the connection
    host.kill_agents();
    return make_error(Code::host_unreachable, "the connection broke");
  }
  TRY_ASSIGN(const Request asked, parse(question, *there));
  const Result<Answer> answer = host.serve(laptop, asked);
  TRY_ASSIGN(const std::string back, carry(world, wire::FrameKind::reply, encode_answer(answer)));
  return parse_answer(question, back);
}

}  // namespace gridctl::sim
