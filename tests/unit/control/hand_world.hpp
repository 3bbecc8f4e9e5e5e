// SPDX-License-Identifier: Apache-2.0
// Work and connections by hand: what would run on threads waits until the test lets it, and each host is a line that notes
// what it is sent and says what the test wants.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/reach/agent_network.hpp"
#include "hand_clock.hpp"
#include "os/executor.hpp"

namespace gridctl::control::testing {

class HandExecutor final : public os::Executor {
 public:
  explicit HandExecutor(HandClock& clock) : clock_(clock) {}
  [[nodiscard]] Timer after(Duration delay, std::function<void()> due) override { return timer(delay, {}, std::move(due)); }
  [[nodiscard]] Timer every(Duration period, std::function<void()> due) override { return timer(period, period, std::move(due)); }
  void post(std::function<void()> work) override { posted_.push_back(std::move(work)); }
  void run(const os::Lane& lane, std::function<void()> work) override {
    lanes.push_back(lane);
    works_.push_back(std::move(work));
  }
  void pause(Duration time) override { clock_.pass(time); }
  // Everything that waits, and what comes of it.
  void settle() {
    while (!works_.empty() || !posted_.empty()) {
      std::deque<std::function<void()>>& queue = works_.empty() ? posted_ : works_;
      const std::function<void()> next = std::move(queue.front());
      queue.pop_front();
      next();
    }
  }
  // Timers that are due, those of now that come of it too.
  void fire() {
    for (std::size_t i = 0; i < timers_.size(); ++i) {
      const std::shared_ptr<void> lives = timers_[i].token.lock();
      if (lives == nullptr || clock_.boot() < timers_[i].due) continue;
      const Alarm alarm = timers_[i];
      timers_[i].due = clock_.boot() + alarm.period;
      if (alarm.period == Duration{}) timers_[i].token.reset();
      alarm.work();
    }
    std::erase_if(timers_, [](const Alarm& one) { return one.token.expired(); });
  }
  std::vector<os::Lane> lanes;  // of all that ever ran

 private:
  struct Alarm {
    BootTime due;
    Duration period;
    std::function<void()> work;
    std::weak_ptr<void> token;
  };
  Timer timer(Duration delay, Duration period, std::function<void()> work) {
    Timer token = std::make_shared<int>();
    timers_.push_back({clock_.boot() + delay, period, std::move(work), token});
    return token;
  }

  HandClock& clock_;
  std::vector<Alarm> timers_;
  std::deque<std::function<void()>> works_, posted_;
};

// One host: how it answers a login, and the conversation with its agent.
struct HandLine {
  std::optional<Error> refuses;
  Duration login{};  // how long one takes
  wire::AgentHello hello;
  int logins = 0;
  bool open = false;
  std::vector<wire::Frame> sent;
  std::function<void(const wire::Frame&)> on_frame;
  std::function<void(const Error&)> on_closed;

  void say(wire::FrameKind kind, std::uint32_t stream, const std::string& payload) {
    const auto listener = on_frame;
    listener({kind, stream, payload});
  }
  void reply(const std::string& payload) { say(wire::FrameKind::reply, sent.back().stream, payload); }
  [[nodiscard]] std::string asked() const { return sent.empty() ? "" : wire::request_name(sent.back().payload); }
  [[nodiscard]] std::vector<std::string> all_asked() const {
    std::vector<std::string> names;
    for (const wire::Frame& frame : sent) names.push_back(wire::request_name(frame.payload));
    return names;
  }
};

class HandNetwork final : public AgentNetwork {
 public:
  explicit HandNetwork(HandClock& clock) : clock_(clock) {}
  [[nodiscard]] Result<std::unique_ptr<AgentChannel>> connect(const registry::Provider& provider, BootTime deadline) override {
    const std::shared_ptr<HandLine> line = this->line(provider.name.value);
    ++line->logins;
    patience = deadline - clock_.boot();
    clock_.pass(line->login);
    if (line->refuses) return *line->refuses;
    return std::unique_ptr<AgentChannel>(std::make_unique<Channel>(line));
  }
  [[nodiscard]] Result<transfer::BulkLink> open(const registry::Provider&, BootTime) override {
    return make_error(Code::host_unreachable, "no way for trees");
  }
  [[nodiscard]] std::shared_ptr<HandLine> line(const std::string& name) {
    std::shared_ptr<HandLine>& line = lines_[name];
    if (line == nullptr) line = std::make_shared<HandLine>();
    return line;
  }
  Duration patience{};  // of the last login

 private:
  class Channel final : public AgentChannel {
   public:
    explicit Channel(std::shared_ptr<HandLine> line) : line_(std::move(line)) { line_->open = true; }
    ~Channel() override { line_->open = false; }
    [[nodiscard]] const wire::AgentHello& hello() const override { return line_->hello; }
    void listen(std::function<void(const wire::Frame&)> on_frame, std::function<void(const Error&)> on_closed) override {
      line_->on_frame = std::move(on_frame);
      line_->on_closed = std::move(on_closed);
    }
    void send(const wire::Frame& frame) override { line_->sent.push_back(frame); }

   private:
    std::shared_ptr<HandLine> line_;
  };

  HandClock& clock_;
  std::map<std::string, std::shared_ptr<HandLine>> lines_;
};

}  // namespace gridctl::control::testing
