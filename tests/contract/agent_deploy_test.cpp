// SPDX-License-Identifier: Apache-2.0
// The real agent, put on a real sshd's host and spoken to, over both transports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "control/reach/agent_link.hpp"
#include "control/reach/deploy.hpp"
#include "crypto/sha256.hpp"
#include "os/clock.hpp"
#include "support/ssh_server.hpp"

namespace gridctl::control::agent_deploy_test {
namespace {

class AgentDeploy : public ::testing::TestWithParam<ssh::TransportKind> {
 protected:
  void SetUp() override {
    const auto bytes = os::read_file(GRIDCTL_BINARY_DIR "/bin/gridctl-agent.stripped");
    if (!bytes) GTEST_SKIP() << "the agent is not built";
    agent_ = *bytes;
    hash_ = to_hex(crypto::sha256(as_bytes(agent_)));
    arch_ = os::run({"uname", "-m"})->out;
    arch_.pop_back();
    test::ServerOptions options;
    options.config = "SetEnv SHLVL=1 GRIDCTL_AGENT_HOME=\"" + home().native() + "\"\n";
    server_ = test::SshServer::start(dir_.path(), "server", options);
    if (!server_) GTEST_SKIP() << "there is no sshd";
    const ssh::HostKey key = server_->host_key("ed25519");
    ASSERT_TRUE(ssh::pin(server_->target(GetParam()), {&key, 1}).has_value());
  }
  Result<AgentSession> open() {
    return open_agent(over_ssh(server_->target(GetParam()), clock_), {{{arch_, agent_, hash_}}, {"testcontroller"}, {}},
                      soon(), clock_);
  }
  [[nodiscard]] os::Path home() const { return dir_.path() / "agent home"; }
  [[nodiscard]] BootTime soon() const { return clock_.boot() + std::chrono::seconds{30}; }

  os::Clock& clock_ = os::system_clock();
  test::TempDir dir_;
  std::unique_ptr<test::SshServer> server_;
  std::string agent_, hash_, arch_;
};

INSTANTIATE_TEST_SUITE_P(Both, AgentDeploy, ::testing::Values(ssh::TransportKind::libssh2, ssh::TransportKind::system),
                         [](const auto& with) { return std::string{ssh::transport_name(with.param)}; });

TEST_P(AgentDeploy, PutsTheAgentThereOnceAndPollsIt) {
  auto session = open();
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
  EXPECT_EQ(session->hello.build, hash_);
  EXPECT_FALSE(session->hello.boot_id.empty());
  EXPECT_TRUE(os::exists(home() / "bin" / hash_ / "gridctl-agent"));
  BlockingLink link{std::move(session).value(), clock_};
  ASSERT_TRUE(link.send({wire::FrameKind::request, 2, wire::encode(wire::PollRequest{})}, soon()).has_value());
  const auto answer = link.receive(soon());
  ASSERT_TRUE(answer.has_value()) << answer.error().one_line();
  const auto poll = wire::parse_poll_reply(answer->payload);
  ASSERT_TRUE(poll.has_value()) << answer->payload;
  EXPECT_TRUE(poll->attempts.empty());
}

// Of an image beyond the window of an SSH channel: nobody there takes the rest.
TEST_P(AgentDeploy, SaysAtOnceWhyItCannotBePutThere) {
  ASSERT_TRUE(os::write_file_atomically(home(), "a file where the folder should be").has_value());
  agent_.append(8u << 20, 'x');
  const BootTime begun = clock_.boot();
  const auto session = open();
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::refused) << session.error().one_line();
  EXPECT_NE(session.error().message.find("mkdir"), std::string::npos) << session.error().one_line();
  EXPECT_LT(seconds(clock_.boot() - begun), 20);
}

TEST_P(AgentDeploy, CarriesTheHeartbeatInTheLoopUntilTheServerDies) {
  auto session = open();
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
  os::Loop loop;
  LoopLink link{loop, clock_, std::move(session).value()};
  int answers = 0, closed = 0;
  const auto ask = [&] {
    link.send({wire::FrameKind::request, static_cast<std::uint32_t>(2 + answers), wire::encode(wire::PollRequest{})});
  };
  link.on_frame = [&](const wire::Frame& frame) {
    EXPECT_TRUE(wire::parse_poll_reply(frame.payload).has_value()) << frame.payload;
    if (++answers < 20) return ask();
    server_->stop();
  };
  link.on_closed = [&](const Error& error) {
    ++closed;
    EXPECT_EQ(error.code, Code::host_unreachable) << error.one_line();
    loop.stop();
  };
  ask();
  loop.run();
  EXPECT_EQ(answers, 20);
  EXPECT_EQ(closed, 1);
}

}  // namespace
}  // namespace gridctl::control::agent_deploy_test
