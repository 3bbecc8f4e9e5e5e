// SPDX-License-Identifier: Apache-2.0
#include "integration/agent_client.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace gridctl::testing {
namespace {

constexpr Duration k_reply_wait = std::chrono::seconds{60};
constexpr Duration k_poll_every = std::chrono::milliseconds{500};  // events come in between

std::map<std::string, std::string> whole_environment(const AgentHost& host) {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string assignment(*entry);
    const auto cut = assignment.find('=');
    if (cut != std::string::npos) all[assignment.substr(0, cut)] = assignment.substr(cut + 1);
  }
  for (const auto& [name, value] : host.environment) all[name] = value;
  all["GRIDCTL_AGENT_HOME"] = host.home.string();
  all["GRIDCTL_LEASE_DIR"] = host.leases.string();
  return all;
}

}  // namespace

AgentClient::AgentClient(const AgentHost& host, ControllerId controller, std::vector<std::string> features) {
  ::signal(SIGPIPE, SIG_IGN);
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
  os::Fd child_in(in[0]), child_out(out[1]);
  to_agent_ = os::Fd(in[1]);
  from_agent_ = os::Fd(out[0]);
  os::SpawnOptions options;
  options.stdin_fd = child_in.get();
  options.stdout_fd = child_out.get();
  options.environment = whole_environment(host);
  std::vector<std::string> command = host.command;
  command.emplace_back("connect");
  auto pid = os::spawn(command, options);
  if (!pid) {
    ADD_FAILURE() << pid.error().one_line();
    std::abort();
  }
  pid_ = *pid;
  link_ = std::make_unique<transfer::FdLink>(from_agent_.get(), to_agent_.get(), true);
  wire::ControllerHello hello;
  hello.controller = std::move(controller);
  hello.features = std::move(features);
  const auto reply = call(wire::encode(hello));
  if (!reply) {
    ADD_FAILURE() << "hello: " << reply.error().one_line();
    return;
  }
  auto parsed = wire::parse_agent_hello(*reply);
  if (parsed) hello_ = *parsed;
}

AgentClient::~AgentClient() {
  to_agent_.reset();
  from_agent_.reset();
  if (pid_ > 0) (void)os::wait(pid_);
}

void AgentClient::kill() {
  ::kill(pid_, SIGKILL);
  (void)os::wait(pid_);
  pid_ = -1;
}

Result<wire::Frame> AgentClient::receive(BootTime deadline) {
  for (;;) {
    TRY_ASSIGN(wire::Frame frame, link_->receive(deadline));
    if (frame.kind != wire::FrameKind::event) return frame;
    TRY_ASSIGN(const auto event, wire::parse_poll_reply(frame.payload));
    events_.insert(events_.end(), event.attempts.begin(), event.attempts.end());
  }
}

Result<std::string> AgentClient::call(const std::string& payload) {
  TRY(link_->send({wire::FrameKind::request, ++stream_, payload}, now() + k_reply_wait));
  TRY_ASSIGN(wire::Frame frame, receive(now() + k_reply_wait));
  if (frame.kind != wire::FrameKind::reply || frame.stream != stream_)
    return make_error(Code::protocol_violation, "another frame came than the reply");
  if (auto error = wire::payload_error(frame.payload)) return *error;
  return std::move(frame.payload);
}

Result<wire::StartReply> AgentClient::start(const wire::AttemptSpec& spec, Duration lease,
                                            const std::map<std::string, std::string>& secrets, const std::string& op) {
  wire::StartRequest request;
  request.op.value = op + std::to_string(spec.epoch.value);
  request.echo = now();
  request.boot_id = hello_.boot_id;
  request.lease = lease;
  request.spec = spec;
  request.secrets = secrets;
  TRY_ASSIGN(const std::string reply, call(wire::encode(request)));
  return wire::parse_start_reply(reply);
}

Result<wire::PollReply> AgentClient::poll(const wire::AttemptSpec& spec, Duration lease, std::uint64_t kept_from) {
  wire::PollRequest request;
  request.echo = now();
  request.lease = lease;
  request.attempts.push_back({spec.job, spec.epoch, kept_from});
  TRY_ASSIGN(const std::string reply, call(wire::encode(request)));
  return wire::parse_poll_reply(reply);
}

Result<void> AgentClient::stop(const wire::AttemptSpec& spec, Duration grace) {
  TRY(call(wire::encode(wire::StopRequest{{"stop"}, spec.job, spec.epoch, grace})));
  return {};
}

Result<void> AgentClient::clean(const wire::AttemptSpec& spec) {
  TRY(call(wire::encode(wire::CleanRequest{{"clean"}, spec.job, spec.epoch})));
  return {};
}

std::string AgentClient::log(const wire::AttemptSpec& spec) {
  std::string all;
  for (std::uint64_t offset = 0;;) {
    const auto reply = call(wire::encode(wire::LogRequest{spec.job, spec.epoch, offset}));
    if (!reply) return all;
    const auto head = wire::parse_log_reply(*reply);
    if (!head) return all;
    std::string piece;
    for (;;) {
      const auto frame = receive(now() + k_reply_wait);
      if (!frame || frame->kind == wire::FrameKind::end) break;
      piece += frame->payload;
    }
    all += piece;
    offset = head->offset + piece.size();
    if (piece.empty() || offset >= head->end_offset) return all;
  }
}

wire::AttemptStatus AgentClient::await(const wire::AttemptSpec& spec,
                                       const std::function<bool(const wire::AttemptStatus&)>& condition,
                                       Duration timeout) {
  const BootTime give_up = now() + timeout;
  wire::AttemptStatus last;
  const auto fits = [&](const wire::AttemptStatus& status) {
    if (status.job != spec.job || status.epoch != spec.epoch) return false;
    last = status;
    return condition(status) || status.phase == wire::AttemptPhase::ended;  // nothing will come after the end
  };
  while (now() < give_up) {
    // Once more after subscribing, then whenever events are silent for a while.
    const auto polled = poll(spec, {});
    if (!polled) {
      ADD_FAILURE() << "poll: " << polled.error().one_line();
      return last;
    }
    events_.clear();
    if (std::any_of(polled->attempts.begin(), polled->attempts.end(), fits)) return last;
    const BootTime next_poll = std::min(give_up, now() + k_poll_every);
    while (now() < next_poll) {
      auto frame = link_->receive(next_poll);
      if (!frame) break;
      const auto event = wire::parse_poll_reply(frame->payload);
      if (event && std::any_of(event->attempts.begin(), event->attempts.end(), fits)) return last;
    }
  }
  return last;
}

wire::AttemptStatus AgentClient::await_end(const wire::AttemptSpec& spec, Duration timeout) {
  return await(
      spec, [](const wire::AttemptStatus& status) { return status.phase == wire::AttemptPhase::ended; }, timeout);
}

}  // namespace gridctl::testing
