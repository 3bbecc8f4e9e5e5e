// SPDX-License-Identifier: Apache-2.0
#include "control/reach/deploy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_agent.hpp"
#include "os/process.hpp"

namespace gridctl::control::deploy_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Deploy : public ::testing::Test {
 protected:
  Result<AgentSession> open(const std::string& before = {}) {
    return open_agent(host_.connector(before), host_.call(), deadline(), clock_);
  }
  Error refusal() {
    auto session = open();
    EXPECT_FALSE(session.has_value());
    return session ? make_error(Code::internal, "it started") : std::move(session).error();
  }
  [[nodiscard]] BootTime deadline() const { return clock_.boot() + std::chrono::seconds{20}; }

  os::Clock& clock_ = os::system_clock();
  test::FakeHost host_;
};

TEST_F(Deploy, PutsTheAgentOnAHostThatLacksItAndGreetsIt) {
  const auto session = open();
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
  EXPECT_EQ(session->hello.machine_id, "machine");
  EXPECT_EQ(session->hello.host_time.ns, 123);
  EXPECT_TRUE(os::exists(host_.installed()));
  EXPECT_EQ(host_.commands(), 3) << "start, store, start";
}

TEST_F(Deploy, SendsTheAgentCompressedToAHostThatHasGzip) {
  AgentCall call = host_.call();
  os::RunOptions options;
  options.input = std::string(call.images[0].bytes);
  const std::string compressed = os::run({"gzip", "-c"}, options)->out;
  call.images[0].gzip = compressed;
  host_.replace_program("gzip", "echo \"$@\" > \"$GRIDCTL_AGENT_HOME/unpacked\"; PATH=${PATH#*:}; exec gzip \"$@\"");
  const auto session = open_agent(host_.connector(), call, deadline(), clock_);
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
  EXPECT_TRUE(os::exists(host_.installed()));
  EXPECT_TRUE(os::exists(host_.path("home/unpacked"))) << "it was not compressed";
}

TEST_F(Deploy, DoesNotUploadAgain) {
  ASSERT_TRUE(open().has_value());
  const int before = host_.commands();
  ASSERT_TRUE(open().has_value());
  EXPECT_EQ(host_.commands() - before, 1);
}

TEST_F(Deploy, ToleratesTheNoiseOfALoginShell) {
  const auto session = open("echo Welcome; echo; echo 'to the cluster'; ");
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
}

TEST_F(Deploy, QuotesEndlessNoise) {
  auto session = open("yes 'Password expired' | head -c 200000; exit; ");
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::protocol_violation);
  EXPECT_THAT(session.error().message, AllOf(HasSubstr("Password expired"), HasSubstr("worker@fake:22")));
}

TEST_F(Deploy, QuotesAShellThatSaysNo) {
  auto session = open("echo 'This account is currently not available.'; exit 1; ");
  ASSERT_FALSE(session.has_value());
  EXPECT_THAT(session.error().message, HasSubstr("not available"));
}

TEST_F(Deploy, SaysThatAShellWhichEndsWithoutAWordRunsNothing) {
  auto session = open("exit 1; ");
  ASSERT_FALSE(session.has_value());
  EXPECT_THAT(session.error().message, HasSubstr("nologin"));
  EXPECT_THAT(session.error().hint, HasSubstr("ssh -p 22 worker@fake true"));
}

TEST_F(Deploy, NamesTheStartUpFilesOfAShellThatDoesNotEnd) {
  const BootTime begun = clock_.boot();
  const auto session = open("exec sleep 60; ");
  ASSERT_FALSE(session.has_value());
  EXPECT_THAT(session.error().message, AllOf(HasSubstr(".bashrc"), HasSubstr("config.fish")));
  EXPECT_LT(seconds(clock_.boot() - begun), 50);
}

TEST_F(Deploy, NeedsNeitherAPathNorAHomeOfTheShells) {
  const auto session = open("unset HOME; ");
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
  EXPECT_TRUE(open("PATH=/nowhere; export PATH; ").has_value());
}

TEST_F(Deploy, SaysThatALimitOnTheSizeOfFilesCutTheAgentShort) {
  host_.replace_program("cat", "exit 153");
  EXPECT_THAT(refusal().message, HasSubstr("ulimit -f"));
}

TEST_F(Deploy, SaysThatTheHostsDiskIsFull) {
  host_.replace_program("cat", "echo 'cat: write error: No space left on device' >&2; exit 1");
  const Error error = refusal();
  EXPECT_EQ(exit_code(error.code), 5) << error.one_line();
  EXPECT_THAT(error.message, HasSubstr("used up"));
  EXPECT_THAT(error.hint, HasSubstr("df -i"));
  EXPECT_FALSE(os::exists(host_.installed()));
}

TEST_F(Deploy, SaysThatTheQuotaIsUsedUp) {
  host_.replace_program("mkdir", "echo \"mkdir: cannot create directory: Disk quota exceeded\" >&2; exit 1");
  EXPECT_THAT(refusal().message, HasSubstr("used up"));
}

TEST_F(Deploy, SaysThatTheHomeForbidsExecution) {
  host_.replace_program("chmod", "exec /bin/chmod 600 \"$2\"");
  const Error error = refusal();
  EXPECT_EQ(exit_code(error.code), 5) << error.one_line();
  EXPECT_THAT(error.message, HasSubstr("noexec"));
  EXPECT_THAT(error.hint, HasSubstr("ssh -p 22 worker@fake 'ln -s DIR ~/.gridctl'"));
}

TEST_F(Deploy, RefusesAnAgentThatArrivedShort) {
  host_.replace_program("cat", "exec head -c 10");
  const Error error = refusal();
  EXPECT_EQ(error.code, Code::protocol_violation) << error.one_line();
  EXPECT_THAT(error.message, HasSubstr("damaged"));
  EXPECT_FALSE(os::exists(host_.installed()));
}

TEST_F(Deploy, RefusesAnAgentThatNamesAnotherHash) {
  host_.replace_program("sha256sum", "echo 0123");
  EXPECT_THAT(refusal().message, HasSubstr("damaged"));
}

TEST_F(Deploy, SaysThatThereIsNoAgentForTheMachineType) {
  host_.replace_program("uname", "echo riscv64");
  const Error error = refusal();
  EXPECT_EQ(exit_code(error.code), 5);
  EXPECT_THAT(error.message,
              AllOf(HasSubstr("riscv64"), HasSubstr("only for " + std::string{host_.call().images[0].arch})));
}

TEST_F(Deploy, ChoosesTheAgentByTheMachineType) {
  host_.replace_program("uname", "echo sparc64");
  AgentCall call = host_.call();
  const AgentImage right{"sparc64", call.images[0].bytes, call.images[0].sha256_hex};
  call.images = {{"x86_64", "of another machine", "0000"}, right, {"aarch64", "of yet another", "1111"}};
  const auto session = open_agent(host_.connector(), call, deadline(), clock_);
  ASSERT_TRUE(session.has_value()) << session.error().one_line();
  EXPECT_TRUE(os::exists(host_.installed()));
}

TEST_F(Deploy, PassesOnWhatAFailingAgentSays) {
  host_.set_agent("echo 'kernel too old' >&2; exit 1\n");
  EXPECT_THAT(refusal().message, HasSubstr("kernel too old"));
}

TEST_F(Deploy, GivesUpAtTheDeadlineWhenTheHostSaysNothing) {
  const BootTime begun = clock_.boot();
  const auto session =
      open_agent(host_.connector("exec sleep 60; "), host_.call(), begun + std::chrono::milliseconds{300}, clock_);
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::timed_out);
  EXPECT_LT(seconds(clock_.boot() - begun), 50);
}

// A hundred seconds in one.
class FastClock final : public os::Clock {
 public:
  [[nodiscard]] BootTime boot() const override { return {began_ + (os::system_clock().boot().ns - began_) * 100}; }
  [[nodiscard]] WallTime wall() const override { return os::system_clock().wall(); }

 private:
  const std::int64_t began_ = os::system_clock().boot().ns;
};

TEST_F(Deploy, IsNotHeldByAHostThatDrips) {
  FastClock fast;
  const BootTime begun = fast.boot();
  const auto session = open_agent(host_.connector("while sleep 0.02; do printf .; done; "), host_.call(),
                                  begun + std::chrono::minutes{30}, fast);
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::timed_out);
  EXPECT_LT(seconds(fast.boot() - begun), 300) << session.error().one_line();
}

}  // namespace
}  // namespace gridctl::control::deploy_test
