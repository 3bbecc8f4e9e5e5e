// SPDX-License-Identifier: Apache-2.0
// A link over a channel by hand: its deadlines, its order, its end.
#include <gmock/gmock.h>

#include <deque>
#include <unistd.h>

#include "control/reach/agent_link.hpp"
#include "hand_clock.hpp"
#include "os/process.hpp"
#include "support/results.hpp"

namespace gridctl::control::agent_link_channel_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using testing::HandClock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a test wrote down of a command: what it says, and how much it takes.
struct Wire {
  std::deque<std::string> says;  // a piece for each read
  bool ended = false;            // after that; else nothing comes now
  std::size_t takes = SIZE_MAX;  // bytes for each write; 0: none now
  bool flushed = true;
  std::optional<Error> broken;
  std::string stderr_tail, got;
  int alive = 0;  // keepalives
  bool closed = false;
};

class HandChannel final : public ssh::Channel {
 public:
  HandChannel(Wire& wire, HandClock& clock) : wire_(wire), clock_(clock) {
    EXPECT_EQ(::pipe(pipe_), 0);
    EXPECT_EQ(::write(pipe_[1], "x", 1), 1);  // always ready: nobody waits in a test
  }
  ~HandChannel() override {
    ::close(pipe_[0]), ::close(pipe_[1]);
    wire_.closed = true;
  }
  Result<std::optional<std::size_t>> read(std::span<std::byte> into) override {
    if (wire_.broken) return *wire_.broken;
    clock_.pass(1ms);
    if (wire_.says.empty()) return wire_.ended ? std::optional<std::size_t>(0) : std::nullopt;
    std::string& first = wire_.says.front();
    const std::size_t count = std::min(first.size(), into.size());
    std::copy_n(as_bytes(first).begin(), count, into.begin());
    first.erase(0, count);
    if (first.empty()) wire_.says.pop_front();
    return std::optional(count);
  }
  Result<std::optional<std::size_t>> write(ByteView bytes) override {
    if (wire_.broken) return *wire_.broken;
    clock_.pass(1ms);
    if (wire_.takes == 0 || bytes.empty()) return std::optional<std::size_t>();
    const std::size_t count = std::min(bytes.size(), wire_.takes);
    wire_.got += as_text(bytes.first(count));
    return std::optional(count);
  }
  [[nodiscard]] bool flushed() const override { return wire_.flushed; }
  void close_write() override {}
  [[nodiscard]] std::vector<ssh::Watched> wants(bool) const override { return {{pipe_[0], {true, false}}}; }
  void keepalive(BootTime) override { ++wire_.alive; }
  [[nodiscard]] std::string stderr_tail() const override { return wire_.stderr_tail; }
  [[nodiscard]] ssh::TransportKind transport() const override { return ssh::TransportKind::automatic; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }

 private:
  Wire& wire_;
  HandClock& clock_;
  int pipe_[2] = {-1, -1};
  const std::string peer_ = "me@ada:22";
};

class OverAChannel : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<HandChannel> channel() { return std::make_unique<HandChannel>(wire, clock); }
  [[nodiscard]] BlockingLink link() { return {channel(), wire::Decoder{false}, clock}; }
  [[nodiscard]] BootTime soon() const { return clock.boot() + 50ms; }
  static std::string bytes_of(const wire::Frame& frame) { return wire::encode(frame); }

  HandClock clock;
  Wire wire;
  const wire::Frame frame{wire::FrameKind::reply, 7, "{}"};
};

TEST_F(OverAChannel, ReadingWaitsUntilTheDeadlineAndKeepsTheConnectionAlive) {
  const auto one = channel();
  std::array<std::byte, 8> into;
  EXPECT_THAT(read_blocking(*one, into, soon(), clock), FailsWith(Code::timed_out));
  EXPECT_THAT(read_blocking(*one, into, soon(), clock).error().message, HasSubstr("me@ada:22 did not answer in time"));
  EXPECT_GT(wire.alive, 0);
  wire.says = {"abc"};
  EXPECT_EQ(*read_blocking(*one, into, clock.boot(), clock), 3u) << "what is there is read, however late it is";
  wire.ended = true;
  EXPECT_EQ(*read_blocking(*one, into, soon(), clock), 0u);
  wire.broken = make_error(Code::host_unreachable, "reset");
  EXPECT_THAT(read_blocking(*one, into, soon(), clock), FailsWith(Code::host_unreachable));
}

TEST_F(OverAChannel, AFrameIsReceivedHoweverItIsCut) {
  const std::string bytes = bytes_of(frame);
  for (const char byte : bytes) wire.says.emplace_back(1, byte);
  BlockingLink one = link();
  EXPECT_EQ(*one.receive(clock.boot() + 10s), frame);
  EXPECT_EQ(std::exchange(wire.alive, 0), 0) << "nothing was waited for";
  EXPECT_THAT(one.receive(soon()), FailsWith(Code::timed_out));
  EXPECT_GT(wire.alive, 0);
  wire.says = {bytes + bytes};
  EXPECT_EQ(*one.receive(soon()), frame) << "the link can still be used";
  EXPECT_EQ(*one.receive(clock.boot()), frame) << "it is here already";
}

TEST_F(OverAChannel, AnAgentThatEndsSaysWhy) {
  wire.says = {bytes_of(frame)};
  wire.ended = true;
  wire.stderr_tail = "\n out of \x1b memory \n";
  BlockingLink one = link();
  EXPECT_EQ(*one.receive(soon()), frame) << "first what it said before";
  const auto ended = one.receive(soon());
  ASSERT_THAT(ended, FailsWith(Code::host_unreachable));
  EXPECT_EQ(ended.error().message, "the agent on me@ada:22 closed the connection: out of ^[ memory");
  wire.stderr_tail.clear();
  EXPECT_EQ(one.receive(soon()).error().message, "the agent on me@ada:22 closed the connection");
}

TEST_F(OverAChannel, SendingTakesInWhatComesMeanwhile) {
  wire.takes = 0;
  wire.says = {bytes_of(frame)};
  BlockingLink one = link();
  EXPECT_THAT(one.send({wire::FrameKind::request, 1, "{}"}, soon()), FailsWith(Code::timed_out));
  EXPECT_THAT(wire.says, IsEmpty());
  EXPECT_EQ(*one.receive(clock.boot()), frame);
  wire.takes = 3;
  EXPECT_THAT(one.send({wire::FrameKind::request, 2, "{}"}, clock.boot() + 1s), IsOk());
  EXPECT_EQ(wire.got, bytes_of({wire::FrameKind::request, 2, "{}"}));
  wire.flushed = false;
  EXPECT_THAT(one.send({wire::FrameKind::request, 3, "{}"}, soon()), FailsWith(Code::timed_out));
  wire.broken = make_error(Code::host_unreachable, "reset");
  EXPECT_THAT(one.send(frame, soon()), FailsWith(Code::host_unreachable));
  EXPECT_THAT(one.receive(soon()), FailsWith(Code::host_unreachable));
}

class InTheLoop : public OverAChannel {
 protected:
  void open() {
    AgentSession session;
    session.channel = channel();
    session.decoder = wire::Decoder{false};
    session.hello.build = "b";
    link_.emplace(loop, clock, std::move(session));
    link_->on_frame = [this](const wire::Frame& one) { heard.push_back(one.payload); };
    link_->on_closed = [this](const Error& error) { closed.push_back(error.message); };
  }
  // Some turns of the loop.
  void turn() {
    int left = 5;
    const auto timer = loop.every(1ms, [&] {
      if (--left == 0) loop.stop();
    });
    loop.run();
  }

  os::Loop loop;
  std::optional<LoopLink> link_;
  std::vector<std::string> heard, closed;
};

TEST_F(InTheLoop, WhatWasThereIsHeardAfterTheLinkWasMade) {
  wire.says = {bytes_of({wire::FrameKind::reply, 1, "one"}) + bytes_of({wire::FrameKind::event, 0, "two"})};
  open();
  EXPECT_THAT(heard, IsEmpty());
  turn();
  EXPECT_THAT(heard, ElementsAre("one", "two"));
  EXPECT_EQ(link_->hello().build, "b");
}

TEST_F(InTheLoop, WhatIsSentLeavesInItsOrderAsItIsTaken) {
  open();
  wire.takes = 0;
  link_->send({wire::FrameKind::request, 1, "one"});
  link_->send({wire::FrameKind::request, 2, "two"});
  turn();
  const std::string all = bytes_of({wire::FrameKind::request, 1, "one"}) + bytes_of({wire::FrameKind::request, 2, "two"});
  EXPECT_EQ(link_->queued_bytes(), all.size());
  wire.takes = 5;
  turn();
  EXPECT_EQ(wire.got, all);
  EXPECT_EQ(link_->queued_bytes(), 0u);
}

TEST_F(InTheLoop, ItsEndIsToldOnceAndNothingIsSentThen) {
  open();
  wire.ended = true;
  turn();
  EXPECT_THAT(closed, ElementsAre(HasSubstr("closed the connection")));
  link_->send({wire::FrameKind::request, 1, "late"});
  turn();
  EXPECT_THAT(closed, SizeIs(1));
  EXPECT_EQ(link_->queued_bytes(), 0u);
  EXPECT_EQ(wire.got, "");
}

TEST_F(InTheLoop, AConnectionThatBreaksIsToldOfWhetherReadOrWritten) {
  open();
  wire.broken = make_error(Code::host_unreachable, "reset by peer");
  turn();
  EXPECT_THAT(closed, ElementsAre("reset by peer"));
}

TEST_F(InTheLoop, NobodyIsToldOfAnythingWhenItIsGone) {
  wire.says = {bytes_of(frame)};
  open();
  link_.reset();
  EXPECT_TRUE(wire.closed);
  turn();
  EXPECT_THAT(heard, IsEmpty());
  EXPECT_THAT(closed, IsEmpty());
}

}  // namespace
}  // namespace gridctl::control::agent_link_channel_test
