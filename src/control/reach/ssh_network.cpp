// SPDX-License-Identifier: Apache-2.0
#include "control/reach/ssh_network.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"

#include "control/reach/agent_link.hpp"
#include "control/reach/connect_agent.hpp"
#include "control/reach/request.hpp"
#include "os/net.hpp"
#include "ssh/connect.hpp"

namespace gridctl::control {

namespace {

// Its session is made on a thread; the loop watches it from listen() on.
class SshChannel : public AgentChannel {
 public:
  SshChannel(os::Loop& loop, os::Clock& clock, AgentSession session)
      : loop_(loop), clock_(clock), hello_(session.hello), way_(session.way), session_(std::move(session)) {}
  ~SshChannel() override {
    // Destroyed from the loop, not from inside its own callback.
    if (link_ != nullptr) loop_.post([link = std::shared_ptr<LoopLink>(std::move(link_))] {});
  }

  [[nodiscard]] const wire::AgentHello& hello() const override { return hello_; }
  [[nodiscard]] std::string way() const override { return way_; }
  void listen(std::function<void(const wire::Frame&)> on_frame, std::function<void(const Error&)> on_closed) override {
    link_ = std::make_unique<LoopLink>(loop_, clock_, std::move(session_));
    link_->on_frame = std::move(on_frame);
    link_->on_closed = std::move(on_closed);
    link_->on_room = on_room;
  }
  void send(const wire::Frame& frame) override { link_->send(frame); }
  [[nodiscard]] std::size_t queued_bytes() const override { return link_->queued_bytes(); }

 private:
  os::Loop& loop_;
  os::Clock& clock_;
  const wire::AgentHello hello_;
  const std::string way_;
  AgentSession session_;
  std::unique_ptr<LoopLink> link_;
};

constexpr std::size_t k_script_answer_max = 4096;  // bytes

Error nobody_listens() { return make_error(Code::unsupported, "nobody here listens to hosts"); }

}  // namespace

Result<std::unique_ptr<AgentChannel>> SshNetwork::connect(const registry::Provider& provider, BootTime deadline) {
  if (loop_ == nullptr) return nobody_listens();
  TRY_ASSIGN(AgentSession session, open_session(provider, paths_, controller_, {"events"}, deadline, clock_, *ways_));
  return std::unique_ptr<AgentChannel>(std::make_unique<SshChannel>(*loop_, clock_, std::move(session)));
}

Result<transfer::BulkLink> SshNetwork::open(const registry::Provider& provider, BootTime deadline) {
  return open_bulk(provider, paths_, controller_, deadline, clock_, *ways_, told_);
}

Result<std::unique_ptr<AgentChannel>> SshNetwork::stream(const registry::Provider& provider,
                                                         const wire::EnterRequest& whom, BootTime deadline) {
  if (loop_ == nullptr) return nobody_listens();
  TRY_ASSIGN(AgentSession session, open_session(provider, paths_, controller_, {std::string(wire::k_streams_feature)},
                                                deadline, clock_, *ways_));
  const wire::AgentHello hello = session.hello;
  if (std::ranges::find(hello.features, wire::k_streams_feature) == hello.features.end())
    return AgentNetwork::stream(provider, whom, deadline);
  BlockingLink link(std::move(session), clock_);
  TRY(ask(link, 1, wire::encode(whom), deadline));
  return std::unique_ptr<AgentChannel>(std::make_unique<SshChannel>(*loop_, clock_, std::move(link).release(hello)));
}

Result<std::string> SshNetwork::run_script(const registry::Provider& provider, const std::string& script,
                                           BootTime deadline) {
  TRY_ASSIGN(const ssh::Target target, target_of(provider, paths_));
  TRY_ASSIGN(const std::unique_ptr<ssh::Channel> channel,
             ssh::connect(target, "sh -c " + shell_quote(script), deadline, clock_));
  std::string answer;
  std::array<std::byte, 512> piece{};
  while (answer.size() < k_script_answer_max) {
    TRY_ASSIGN(const std::size_t got, read_blocking(*channel, piece, deadline, clock_));
    if (got == 0) break;
    answer += as_text(ByteView(piece).first(got));
  }
  return answer;
}

std::vector<std::string> SshNetwork::addresses(const registry::Provider& provider, BootTime deadline) {
  const Result<ssh::Target> target = target_of(provider, paths_);
  if (!target || target->proxied) return {};
  const auto found = os::numeric_addresses(target->host, deadline, clock_);
  return found ? *found : std::vector<std::string>{};
}

// A network whose hosts have no processes, no shell and no addresses.
Result<std::unique_ptr<AgentChannel>> AgentNetwork::stream(const registry::Provider& provider, const wire::EnterRequest&,
                                                           BootTime) {
  return make_error(Code::unsupported, "the agent on " + provider.name.value + " knows no streams");
}

Result<std::string> AgentNetwork::run_script(const registry::Provider& provider, const std::string&, BootTime) {
  return make_error(Code::unsupported, provider.name.value + " gives no shell");
}

std::vector<std::string> AgentNetwork::addresses(const registry::Provider&, BootTime) { return {}; }

}  // namespace gridctl::control
