// SPDX-License-Identifier: Apache-2.0
#include "serve.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

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

// All of these but for the times, as long as both have one.
bool same(const wire::HostCheckpoint& a, const wire::HostCheckpoint& b) {
  return std::tie(a.number, a.root, a.bytes, a.files, a.how) == std::tie(b.number, b.root, b.bytes, b.files, b.how);
}

bool same(const wire::AttemptStatus& a, const wire::AttemptStatus& b) {
  const auto fields = [](const wire::AttemptStatus& s) {
    return std::tie(s.job, s.epoch, s.phase, s.doing, s.end, s.exit_code, s.signal, s.detail, s.log_bytes, s.max_epoch);
  };
  const auto timed = [](const wire::AttemptStatus& s) {
    return std::tuple{s.started_ms_ago >= 0, s.ended_ms_ago >= 0, s.running_ms_ago >= 0, s.allowed_ms >= 0};
  };
  return fields(a) == fields(b) && timed(a) == timed(b) &&
         std::equal(a.checkpoints.begin(), a.checkpoints.end(), b.checkpoints.begin(), b.checkpoints.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

bool same(const wire::PollReply& a, const wire::PollReply& b) {
  return a.boot_id == b.boot_id && a.held == b.held && a.load1 == b.load1 && a.disk_free_bytes == b.disk_free_bytes &&
         std::equal(a.attempts.begin(), a.attempts.end(), b.attempts.begin(), b.attempts.end(),
                    [](const auto& x, const auto& y) { return same(x, y); });
}

// In an order of its own.
template <class Reply, class What>
void each_time(Reply& reply, const What& what) {
  what(reply.host_time.ns);
  for (auto& one : reply.attempts) {
    for (auto* time : {&one.started_ms_ago, &one.ended_ms_ago, &one.running_ms_ago, &one.allowed_ms})
      if (*time >= 0) what(*time);
    for (auto& checkpoint : one.checkpoints) what(checkpoint.age_ms);
  }
}

// Written with a mark in the place of each time: their numbers fill the gaps.
void cut(wire::PollReply reply, LastPoll& last) {
  constexpr std::string_view k_mark = "40404";
  constexpr std::int64_t k_first = 4'040'400'000'000;
  constexpr std::size_t k_digits = 13;
  std::int64_t mark = k_first;
  each_time(reply, [&](std::int64_t& time) { time = mark++; });
  const std::string whole = wire::encode(reply);
  last.pieces.clear();
  last.order.clear();
  std::size_t from = 0;
  for (std::size_t at = whole.find(k_mark); at != std::string::npos; at = whole.find(k_mark, at + 1)) {
    const std::int64_t number = std::strtoll(whole.c_str() + at, nullptr, 10);
    if (number < k_first || number >= mark) continue;
    last.pieces.push_back(whole.substr(from, at - from));
    last.order.push_back(static_cast<std::size_t>(number - k_first));
    from = at + k_digits;
  }
  last.pieces.push_back(whole.substr(from));
}

std::string encode_reply(const wire::PollReply& reply, LastPoll& last) {
  if (last.pieces.empty() || !same(reply, last.reply)) {
    last.reply = reply;
    cut(reply, last);
  }
  std::vector<std::int64_t> times;
  each_time(reply, [&](std::int64_t time) { times.push_back(time); });
  std::string text;
  for (std::size_t i = 0; i < last.order.size(); ++i) text += last.pieces[i] + std::to_string(times[last.order[i]]);
  return text + last.pieces.back();
}

std::string encode_answer(const Result<Answer>& answer, LastPoll& last) {
  if (!answer) return wire::error_payload(answer.error());
  if (const auto* reply = std::get_if<wire::PrepareReply>(&*answer)) return wire::encode(*reply);
  if (const auto* reply = std::get_if<wire::StartReply>(&*answer)) return wire::encode(*reply);
  if (const auto* reply = std::get_if<wire::PollReply>(&*answer)) return encode_reply(*reply, last);
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
Result<std::string> answer(Host& host, int laptop, const std::string& payload, LastPoll& last) {
  const std::string_view operation = operation_of(payload);
  const auto served = [&](Result<Request> request) -> Result<std::string> {
    TRY_ASSIGN(const Request asked, std::move(request));
    return encode_answer(host.serve(laptop, asked), last);
  };
  if (operation == "poll") return served(as_request(parse_poll(payload, last)));
  if (operation == "prepare") return served(as_request(wire::parse_prepare(payload)));
  if (operation == "start") return served(as_request(wire::parse_start(payload)));
  if (operation == "stop") return served(as_request(wire::parse_stop(payload)));
  if (operation == "clean") return served(as_request(wire::parse_clean(payload)));
  if (operation == "standby") return std::string("{}");  // a help only: nothing that is judged depends on it
  return wire::error_payload(make_error(Code::unsupported, "unknown operation '" + std::string(operation) + "'"));
}

}  // namespace

std::string_view operation_of(std::string_view payload) {
  constexpr std::string_view k_name = "\"op\":\"";
  const std::size_t at = payload.find(k_name);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = payload.substr(at + k_name.size());
  return rest.substr(0, rest.find('"'));
}

Result<std::string> serve(World& world, Host& host, int laptop, const wire::Frame& frame, LastPoll& last) {
  const Result<std::string> there = carry(world, wire::FrameKind::request, frame.payload);
  if (!there) {  // the agent drops the connection
    host.kill_agents();
    return make_error(Code::host_unreachable, "the connection broke");
  }
  TRY_ASSIGN(std::string reply, answer(host, laptop, *there, last));
  return carry(world, wire::FrameKind::reply, std::move(reply));
}

}  // namespace gridctl::sim
