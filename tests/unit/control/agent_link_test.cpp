// SPDX-License-Identifier: Apache-2.0
#include "control/reach/agent_link.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "fake_agent.hpp"
#include "os/clock.hpp"

namespace gridctl::control::agent_link_test {
namespace {

class AgentLink : public ::testing::Test {
 protected:
  AgentSession session() {
    auto opened = open_agent(host_.connector(), host_.call(), soon(), clock_);
    EXPECT_TRUE(opened.has_value()) << opened.error().one_line();
    return std::move(opened).value();
  }
  std::unique_ptr<BlockingLink> blocking() { return std::make_unique<BlockingLink>(session(), clock_); }
  [[nodiscard]] BootTime soon() const { return clock_.boot() + std::chrono::seconds{20}; }
  static wire::Frame frame(std::uint32_t stream, std::size_t size) {
    return {wire::FrameKind::data, stream, std::string(size, static_cast<char>('a' + stream % 26))};
  }

  os::Clock& clock_ = os::system_clock();
  test::FakeHost host_;  // echoes what it is sent
};

TEST_F(AgentLink, CarriesFramesBothWays) {
  const auto link_owner = blocking();
  BlockingLink& link = *link_owner;
  ASSERT_TRUE(link.send(frame(7, 100), soon()).has_value());
  const auto answer = link.receive(soon());
  ASSERT_TRUE(answer.has_value()) << answer.error().one_line();
  EXPECT_EQ(*answer, frame(7, 100));
}

TEST_F(AgentLink, SendsMoreThanThePipesHoldBeforeAnythingIsReceived) {
  const auto link_owner = blocking();
  BlockingLink& link = *link_owner;
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(link.send(frame(i, wire::k_frame_max), soon()).has_value());
  for (std::uint32_t i = 0; i < 4; ++i) EXPECT_EQ(*link.receive(soon()), frame(i, wire::k_frame_max));
}

TEST_F(AgentLink, SendsInOneThreadAndReceivesInAnother) {
  const auto link_owner = blocking();
  BlockingLink& link = *link_owner;
  std::thread sender{[&] {
    for (std::uint32_t i = 0; i < 40; ++i) EXPECT_TRUE(link.send(frame(i, 512 * 1024), soon()).has_value());
  }};
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto answer = link.receive(soon());
    ASSERT_TRUE(answer.has_value()) << answer.error().one_line();
    EXPECT_EQ(answer->stream, i);
  }
  sender.join();
}

TEST_F(AgentLink, StaysUsableAfterATimeout) {
  const auto link_owner = blocking();
  BlockingLink& link = *link_owner;
  const auto nothing = link.receive(clock_.boot() + std::chrono::milliseconds{50});
  ASSERT_FALSE(nothing.has_value());
  EXPECT_EQ(nothing.error().code, Code::timed_out);
  ASSERT_TRUE(link.send(frame(1, 10), soon()).has_value());
  EXPECT_TRUE(link.receive(soon()).has_value());
}

TEST_F(AgentLink, GivesTheLoopWhatItHasReadAlready) {
  BlockingLink first{session(), clock_};
  ASSERT_TRUE(first.send(frame(1, 10), soon()).has_value());
  ASSERT_TRUE(first.send(frame(2, 10), soon()).has_value());
  EXPECT_EQ(first.receive(soon())->stream, 1u);  // the second came with it, most likely
  os::Loop loop;
  LoopLink link{loop, clock_, std::move(first).release({})};
  std::vector<std::uint32_t> streams;
  link.on_frame = [&](const wire::Frame& got) {
    streams.push_back(got.stream);
    if (got.stream == 2) link.send(frame(3, 10));
    if (got.stream == 3) loop.stop();
  };
  link.on_closed = [&](const Error& error) {
    ADD_FAILURE() << error.one_line();
    loop.stop();
  };
  loop.run();
  EXPECT_THAT(streams, ::testing::ElementsAre(2, 3));
}

// The answer is there before write() returns, and has been taken from the descriptor, as happens with a near host.
class QuickChannel : public ssh::Channel {
 public:
  Result<std::optional<std::size_t>> read(std::span<std::byte> into) override {
    if (answer_.empty()) return std::optional<std::size_t>{};
    const std::size_t count = std::min(into.size(), answer_.size());
    std::copy_n(answer_.begin(), count, into.begin());
    answer_.erase(answer_.begin(), answer_.begin() + static_cast<std::ptrdiff_t>(count));
    return std::optional{count};
  }
  Result<std::optional<std::size_t>> write(ByteView bytes) override {
    answer_.insert(answer_.end(), bytes.begin(), bytes.end());
    return std::optional{bytes.size()};
  }
  [[nodiscard]] bool flushed() const override { return true; }
  void close_write() override {}
  [[nodiscard]] std::vector<ssh::Watched> wants(bool) const override { return {}; }
  void keepalive(BootTime) override {}
  [[nodiscard]] std::string stderr_tail() const override { return {}; }
  [[nodiscard]] ssh::TransportKind transport() const override { return ssh::TransportKind::libssh2; }
  [[nodiscard]] const std::string& peer() const override { return peer_; }

 private:
  Bytes answer_;
  std::string peer_ = "near";
};

TEST_F(AgentLink, DeliversAtOnceWhatCameWhileItWrote) {
  os::Loop loop;
  AgentSession session;
  session.channel = std::make_unique<QuickChannel>();
  session.decoder = wire::Decoder{false};
  LoopLink link{loop, clock_, std::move(session)};
  bool delivered = false;
  link.on_frame = [&](const wire::Frame& got) {
    EXPECT_EQ(got, frame(7, 100));
    delivered = true;
    loop.stop();
  };
  link.send(frame(7, 100));
  const auto too_late = loop.after(std::chrono::seconds{2}, [&] { loop.stop(); });
  loop.run();
  EXPECT_TRUE(delivered) << "it waits for the next look at the connection, seconds later";
}

TEST_F(AgentLink, CarriesMuchThroughTheLoop) {
  os::Loop loop;
  LoopLink link{loop, clock_, session()};
  std::uint32_t got_count = 0;
  link.on_frame = [&](const wire::Frame& got) {
    EXPECT_EQ(got, frame(got_count, wire::k_frame_max));
    if (++got_count == 6) loop.stop();
  };
  for (std::uint32_t i = 0; i < 6; ++i) link.send(frame(i, wire::k_frame_max));
  loop.run();
  EXPECT_EQ(got_count, 6u);
}

TEST_F(AgentLink, ClosesOnceWhenTheHostSendsNonsense) {
  host_.set_agent("printf '\\nGRIDCTL-AGENT/1\\n'; cat \"$GRIDCTL_AGENT_HOME/reply\"; echo nonsense; exec cat\n");
  os::Loop loop;
  LoopLink link{loop, clock_, session()};
  int closed = 0;
  link.on_closed = [&](const Error& error) {
    ++closed;
    EXPECT_EQ(error.code, Code::protocol_violation);
    loop.post([&] { loop.stop(); });
  };
  loop.run();
  EXPECT_EQ(closed, 1);
}

TEST_F(AgentLink, TellsThatTheAgentEnded) {
  // It waits for our hello: a fake that is gone before it was greeted is another story.
  host_.set_agent(
      "printf '\\nGRIDCTL-AGENT/1\\n'; head -c 16 > /dev/null; cat \"$GRIDCTL_AGENT_HOME/reply\"; "
      "echo 'out of memory' >&2\n");
  os::Loop loop;
  LoopLink link{loop, clock_, session()};
  link.on_closed = [&](const Error& error) {
    EXPECT_EQ(error.code, Code::host_unreachable);
    EXPECT_THAT(error.message, ::testing::HasSubstr("out of memory"));
    loop.stop();
  };
  loop.run();
}

TEST_F(AgentLink, MayBeDestroyedByItsOwnCallback) {
  os::Loop loop;
  auto link = std::make_unique<LoopLink>(loop, clock_, session());
  link->send(frame(1, 10));
  link->send(frame(2, 10));
  int frames = 0;
  link->on_frame = [&](const wire::Frame&) {
    ++frames;
    loop.post([&] { loop.stop(); });
    link.reset();
  };
  loop.run();
  EXPECT_EQ(frames, 1);
}

TEST_F(AgentLink, ClosesWhenTheHostDoesNotRead) {
  host_.set_agent("printf '\\nGRIDCTL-AGENT/1\\n'; cat \"$GRIDCTL_AGENT_HOME/reply\"; exec sleep 60\n");
  os::Loop loop;
  LoopLink link{loop, clock_, session()};
  link.on_closed = [&](const Error& error) {
    EXPECT_THAT(error.message, ::testing::HasSubstr("does not read"));
    loop.stop();
  };
  for (std::uint32_t i = 0; i < 10; ++i) link.send(frame(i, wire::k_frame_max));
  loop.run();
}

}  // namespace
}  // namespace gridctl::control::agent_link_test
