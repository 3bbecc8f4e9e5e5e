// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#include <algorithm>
#include <utility>

#include "wire/bag.hpp"

namespace gridctl::sim {

namespace {

using control::Answer;
using control::Request;

// Through the encoder of one side and the decoder of the other, in pieces.
Result<std::string> carry(World& world, wire::FrameKind kind, std::string payload) {
  if (!world.options.encode) return payload;
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

template <class Parsed>
Result<Request> as_request(Result<Parsed> parsed) {
  TRY_ASSIGN(Parsed request, std::move(parsed));
  return Request{std::move(request)};
}

std::string encode_answer(const Result<Answer>& answer) {
  if (!answer) return wire::error_payload(answer.error());
  if (const auto* reply = std::get_if<wire::PrepareReply>(&*answer)) return wire::encode(*reply);
  if (const auto* reply = std::get_if<wire::StartReply>(&*answer)) return wire::encode(*reply);
  if (const auto* reply = std::get_if<wire::PollReply>(&*answer)) return wire::encode(*reply);
  return "{}";
}

Result<wire::PollRequest> parse_poll(const std::string& payload, LastPoll& last) {
  constexpr std::string_view k_echo = "\"echo_ns\":";
  const std::size_t at = payload.find(k_echo);
  const std::size_t digits = at == std::string::npos ? 0 : at + k_echo.size();
  const std::size_t end = std::min(payload.find_first_not_of("0123456789", digits), payload.size());
  if (digits == 0 || end == digits || end - digits > 18) return wire::parse_poll(payload);
  std::string without_echo = payload.substr(0, digits) + payload.substr(end);
  if (without_echo != last.without_echo) {
    TRY_ASSIGN(last.request, wire::parse_poll(payload));
    last.without_echo = std::move(without_echo);
  } else {
    last.request.echo.ns = std::stoll(payload.substr(digits, end - digits));
  }
  return last.request;
}

// As the agent does with what it does not know.
Result<Served> answer(Host& host, int laptop, const std::string& payload, LastPoll& last) {
  const std::string_view operation = operation_of(payload);
  const auto served = [&](Result<Request> request) -> Result<Served> {
    TRY_ASSIGN(const Request asked, std::move(request));
    return Served{encode_answer(host.serve(laptop, asked)), {}};
  };
  if (operation == "poll") return served(as_request(parse_poll(payload, last)));
  if (operation == "prepare") return served(as_request(wire::parse_prepare(payload)));
  if (operation == "start") return served(as_request(wire::parse_start(payload)));
  if (operation == "stop") return served(as_request(wire::parse_stop(payload)));
  if (operation == "clean") return served(as_request(wire::parse_clean(payload)));
  if (operation == "standby") {
    TRY_ASSIGN(const wire::StandbyRequest request, wire::parse_standby(payload));
    host.stand_by(laptop, request);
    return Served{"{}", {}};
  }
  if (operation == wire::k_bag_operation) {
    TRY_ASSIGN(const wire::BagRequest request, wire::parse_bag(payload));
    return Served{wire::encode(host.answer_bag(laptop, request)), {}};
  }
  const bool of_tasks = operation == wire::k_bag_output_operation;
  if (of_tasks || operation == "log") {
    TRY_ASSIGN(const wire::LogRequest wanted, of_tasks ? wire::parse_bag_output(payload) : wire::parse_log(payload));
    const Result<std::string> log = of_tasks ? host.read_task_output(laptop, wanted) : host.read_log(laptop, wanted);
    if (!log) return Served{wire::error_payload(log.error()), {}};
    return Served{wire::encode(wire::LogReply{wanted.offset, wanted.offset + log->size()}), *log};
  }
  if (operation == wire::k_results_operation) {
    TRY_ASSIGN(const wire::ResultsRequest wanted, wire::parse_results(payload));
    const Result<wire::ResultsReply> reply = host.results(laptop, wanted);
    return Served{reply ? wire::encode(*reply) : wire::error_payload(reply.error()), {}};
  }
  if (operation == wire::k_stacks_operation) {
    TRY_ASSIGN(const wire::StacksRequest wanted, wire::parse_stacks(payload));
    const Result<std::string> text = host.stacks(laptop, wanted);
    return text ? Served{"{}", *text} : Served{wire::error_payload(text.error()), {}};
  }
  if (operation == wire::k_steps_operation) {
    TRY_ASSIGN(const wire::StepsRequest wanted, wire::parse_steps(payload));
    const Result<wire::StepsReply> reply = host.steps(laptop, wanted);
    return Served{reply ? wire::encode(*reply) : wire::error_payload(reply.error()), {}};
  }
  const Error unknown = make_error(Code::unsupported, "unknown operation '" + std::string(operation) + "'");
  return Served{wire::error_payload(unknown), {}};
}

}  // namespace

std::string_view operation_of(std::string_view payload) {
  constexpr std::string_view k_name = "\"op\":\"";
  const std::size_t at = payload.find(k_name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = payload.substr(at + k_name.size());
  return rest.substr(0, rest.find('"'));
}

Result<Served> serve(World& world, Host& host, int laptop, const wire::Frame& frame, LastPoll& last) {
  const Result<std::string> there = carry(world, wire::FrameKind::request, frame.payload);
  if (!there) {  // the agent drops the connection
    host.kill_agents();
    return make_error(Code::host_unreachable, "the connection broke");
  }
  TRY_ASSIGN(Served reply, answer(host, laptop, *there, last));
  TRY_ASSIGN(reply.payload, carry(world, wire::FrameKind::reply, std::move(reply.payload)));
  return reply;
}

std::optional<Point> point_of(std::string_view operation) {
  constexpr std::string_view k_wire = "wire.";
  for (std::size_t i = 0; i < testing::k_points; ++i)
    if (testing::k_point_names[i].starts_with(k_wire) && testing::k_point_names[i].substr(k_wire.size()) == operation)
      return static_cast<Point>(i);
  return std::nullopt;
}

std::string job_named_in(std::string_view payload) {
  constexpr std::string_view k_name = "\"job\":\"";
  const std::size_t at = payload.find(k_name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = payload.substr(at + k_name.size());
  return std::string(rest.substr(0, rest.find('"')));
}

}  // namespace gridctl::sim
