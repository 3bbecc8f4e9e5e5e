// SPDX-License-Identifier: Apache-2.0
// One suite for both SSH transports, against a real sshd on loopback.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "os/log.hpp"
#include "os/net.hpp"
#include "os/ready.hpp"
#include "ssh/connect.hpp"
#include "support/loopback.hpp"
#include "support/ssh_server.hpp"

namespace gridctl::ssh::transport_test {
namespace {

using test::ServerOptions;
using test::SshServer;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Duration k_patience = std::chrono::seconds{30};

os::Clock& clock() { return os::system_clock(); }
BootTime in(Duration duration) { return clock().boot() + duration; }

struct Heard {
  std::string bytes;
  std::optional<Error> error;  // instead of the end of the stream
};

void wait_for(const Channel& channel, bool output_pending) {
  std::vector<os::Poll> polls;
  for (const Watched& watched : channel.wants(output_pending)) polls.push_back({watched.fd, watched.interest, {}});
  // The slice is for what no descriptor tells: the end of a child on kernels without pidfd.
  (void)os::wait_any(polls, in(std::chrono::milliseconds{500}), clock());
}

// Sends all of `input`, then closes, while reading to the end.
Heard converse(Channel& channel, std::string_view input = {}, bool close = true) {
  Heard heard;
  std::vector<std::byte> buffer(256 * 1024);
  const BootTime deadline = in(k_patience);
  bool closed = false;
  while (clock().boot() < deadline) {
    if (!input.empty()) {
      const auto wrote = channel.write(as_bytes(input.substr(0, 300'000)));
      if (wrote && *wrote) input.remove_prefix(**wrote);
      if (!wrote) input = {};  // the reason comes from read
    }
    if (input.empty() && close && !closed) {
      channel.close_write();
      closed = true;
    }
    const auto got = channel.read(buffer);
    if (!got) {
      heard.error = got.error();
      return heard;
    }
    if (!*got) {
      wait_for(channel, !input.empty());
      continue;
    }
    if (**got == 0) return heard;
    heard.bytes += as_text(ByteView{buffer}.first(**got));
  }
  heard.error = make_error(Code::timed_out, "the test's patience ended after " + std::to_string(heard.bytes.size()));
  return heard;
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 12345;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

class Transport : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override {
    if (!os::exists("/usr/sbin/sshd")) GTEST_SKIP() << "there is no sshd";
  }
  // A server and a target with its Ed25519 key pinned.
  Target serve(ServerOptions options = {}, const std::string& pinned_type = "ed25519") {
    server_ = SshServer::start(dir_.path(), "server", std::move(options));
    Target target = server_->target(GetParam());
    const HostKey key = server_->host_key(pinned_type);
    EXPECT_TRUE(pin(target, {&key, 1}).has_value());
    return target;
  }
  static std::unique_ptr<Channel> open(const Target& target, const std::string& command) {
    auto channel = connect(target, command, in(k_patience), clock());
    EXPECT_TRUE(channel.has_value()) << channel.error().one_line();
    return channel ? std::move(channel).value() : nullptr;
  }
  static Error refusal(const Target& target, Duration within = k_patience) {
    auto channel = connect(target, "true", in(within), clock());
    EXPECT_FALSE(channel.has_value());
    return channel ? make_error(Code::internal, "connected") : std::move(channel).error();
  }
  [[nodiscard]] bool libssh2() const { return GetParam() == TransportKind::libssh2; }

  test::TempDir dir_;
  std::unique_ptr<SshServer> server_;
};

INSTANTIATE_TEST_SUITE_P(Both, Transport, ::testing::Values(TransportKind::libssh2, TransportKind::system),
                         [](const auto& with) { return std::string{transport_name(with.param)}; });

TEST_P(Transport, EchoesWhatIsSentAndEndsWhenInputEnds) {
  const auto channel = open(serve(), "cat");
  ASSERT_TRUE(channel);
  EXPECT_EQ(channel->transport(), GetParam());
  const Heard heard = converse(*channel, "hello\n");
  EXPECT_EQ(heard.bytes, "hello\n");
  EXPECT_FALSE(heard.error) << heard.error->one_line();
}

TEST_P(Transport, CarriesEightMebibytesBothWaysAtOnce) {
  const std::string input = pattern(8u << 20);
  const auto channel = open(serve(), "cat");
  ASSERT_TRUE(channel);
  const Heard heard = converse(*channel, input);
  EXPECT_FALSE(heard.error) << heard.error->one_line();
  EXPECT_TRUE(heard.bytes == input) << heard.bytes.size();
}

// Whatever moment an answer comes at: once read() has said "nothing now", a descriptor must tell of it.
TEST_P(Transport, NoAnswerComesUnannounced) {
  const auto channel = open(serve(), "cat");
  ASSERT_TRUE(channel);
  std::array<std::byte, 16> answer;
  for (int round = 0; round < 20'000; ++round) {
    ASSERT_TRUE(channel->write(as_bytes("?")).value_or(std::nullopt));
    for (;;) {
      const auto got = channel->read(answer);
      ASSERT_TRUE(got.has_value()) << got.error().one_line();
      if (*got) break;
      std::vector<os::Poll> polls;
      for (const Watched& watched : channel->wants(!channel->flushed()))
        polls.push_back({watched.fd, watched.interest, {}});
      ASSERT_TRUE(os::wait_any(polls, in(std::chrono::seconds{5}), clock()).value_or(false)) << "round " << round;
    }
  }
}

TEST_P(Transport, SurvivesRekeyingInTheMiddle) {
  const std::string input = pattern(8u << 20);
  const auto channel = open(serve({.config = "RekeyLimit 1M\n"}), "cat");
  ASSERT_TRUE(channel);
  const Heard heard = converse(*channel, input);
  EXPECT_FALSE(heard.error) << heard.error->one_line();
  EXPECT_TRUE(heard.bytes == input) << heard.bytes.size();
}

TEST_P(Transport, DrainsAFloodOfStderrAndKeepsItsEnd) {
  const auto channel = open(serve(), "head -c 8388608 /dev/zero | tr '\\0' e >&2; echo END >&2; echo done");
  ASSERT_TRUE(channel);
  const Heard heard = converse(*channel);
  EXPECT_FALSE(heard.error) << heard.error->one_line();
  EXPECT_EQ(heard.bytes, "done\n");
  EXPECT_THAT(channel->stderr_tail(), HasSubstr("eeeEND"));
  EXPECT_LE(channel->stderr_tail().size(), k_stderr_kept);
}

TEST_P(Transport, TellsOfAMissingCommandOnStderr) {
  const auto channel = open(serve(), "exec /nowhere/gridctl-agent connect");
  ASSERT_TRUE(channel);
  const Heard heard = converse(*channel);
  EXPECT_EQ(heard.bytes, "");
  EXPECT_THAT(channel->stderr_tail(), HasSubstr("/nowhere/gridctl-agent"));
}

TEST_P(Transport, ShowsTruncationWhenTheCommandIsKilledMidStream) {
  const auto channel = open(serve(), "head -c 300000 /dev/zero; kill -9 $$; head -c 300000 /dev/zero");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes.size(), 300000u);
}

TEST_P(Transport, ReportsAnErrorWhenTheServerDiesMidStream) {
  const auto channel = open(serve(), "head -c 100000 /dev/zero; sleep 30");
  ASSERT_TRUE(channel);
  std::thread killer{[this] {
    os::pause_for(std::chrono::milliseconds{300});
    server_->stop();
  }};
  const Heard heard = converse(*channel, {}, false);
  killer.join();
  ASSERT_TRUE(heard.error);
  EXPECT_EQ(heard.error->code, Code::host_unreachable) << heard.error->one_line();
  EXPECT_LE(heard.bytes.size(), 100000u);
}

TEST_P(Transport, CanBeHandedToAnotherThread) {
  const auto channel = open(serve(), "cat");
  ASSERT_TRUE(channel);
  Heard heard;
  std::thread other{[&] { heard = converse(*channel, "from another thread"); }};
  other.join();
  EXPECT_EQ(heard.bytes, "from another thread");
}

TEST_P(Transport, RefusesAChangedHostKeyWithBothFingerprints) {
  Target target = serve();
  test::make_key(dir_.path(), "other-host-ed25519", "ed25519");
  const auto other = SshServer::start(dir_.path(), "other");
  const HostKey key = other->host_key("ed25519");
  ASSERT_TRUE(pin(target, {&key, 1}).has_value());
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::host_key_mismatch);
  EXPECT_THAT(error.message, AllOf(HasSubstr(key.fingerprint), HasSubstr(server_->host_key("ed25519").fingerprint)));
}

TEST_P(Transport, RefusesAnUnknownHostKey) {
  const Target target = serve();
  ASSERT_TRUE(pin(target, {}).has_value());
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::host_key_mismatch);
  EXPECT_THAT(error.message, HasSubstr("no key is pinned"));
}

TEST_P(Transport, ObeysAPinOfTheTypeThatIsNotPreferred) {
  const auto channel = open(serve({}, "ecdsa"), "echo fine");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes, "fine\n");
}

TEST_P(Transport, RefusesAHostThatHasNoKeyOfThePinnedTypeAnyMore) {
  Target target = serve({.host_keys = {"ecdsa"}}, "ecdsa");
  test::make_key(dir_.path(), "old-host-ed25519", "ed25519");
  const auto old = SshServer::start(dir_.path(), "old");
  const HostKey key = old->host_key("ed25519");
  ASSERT_TRUE(pin(target, {&key, 1}).has_value());
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::host_key_mismatch) << error.one_line();
  EXPECT_THAT(error.message, HasSubstr(key.fingerprint));
}

TEST_P(Transport, SaysWhichKeysWereRefused) {
  Target target = serve();
  target.identities = {test::make_key(dir_.path(), "stranger", "ed25519")};
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::auth_refused);
  EXPECT_THAT(error.message, HasSubstr("stranger"));
}

TEST_P(Transport, NamesHostAndPortWhenNothingListens) {
  const Target target = serve();
  server_->stop();
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::host_unreachable);
  EXPECT_THAT(error.message, AllOf(HasSubstr("127.0.0.1:" + std::to_string(target.port)), HasSubstr("refused")));
}

TEST_P(Transport, NamesAnUnknownName) {
  Target target = serve();
  target.alias = target.host = "no-such-host.invalid";
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::host_unreachable) << error.one_line();
  EXPECT_THAT(error.message, HasSubstr("no-such-host.invalid"));
}

TEST_P(Transport, GivesUpOnAServerThatNeverSpeaks) {
  Target target = serve();
  auto silent = os::listen_loopback();
  target.port = silent->second;
  target.connect_timeout = std::chrono::seconds{1};
  const HostKey key = server_->host_key("ed25519");
  ASSERT_TRUE(pin(target, {&key, 1}).has_value());
  const BootTime begun = clock().boot();
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::timed_out) << error.one_line();
  EXPECT_THAT(error.message, HasSubstr("sends nothing"));
  EXPECT_LT(seconds(clock().boot() - begun), 8.0);
}

TEST_P(Transport, RecognisesAServerThatIsNotSsh) {
  Target target = serve();
  auto listener = os::listen_loopback();
  target.port = listener->second;
  const std::string port = std::to_string(target.port);
  listener->first.reset();
  os::SpawnOptions spawn;
  spawn.directory = dir_.path();
  const auto pid = os::spawn({"python3", "-m", "http.server", "--bind", "127.0.0.1", port}, spawn);
  if (!pid) GTEST_SKIP() << "there is no python3";
  const os::ProcessId web = os::identify(*pid).value();
  for (int i = 0; i < 300 && !os::connect_tcp("127.0.0.1", target.port, in(k_patience), clock()); ++i)
    os::pause_for(std::chrono::milliseconds{10});
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::host_unreachable) << error.one_line();
  EXPECT_THAT(error.message, AllOf(HasSubstr("not an SSH server"), HasSubstr(port)));
  (void)os::send_signal(web, SIGKILL);
  (void)os::wait(*pid);
}

TEST_P(Transport, HonoursTheDeadlineWhenTheServerIsFrozen) {
  const Target target = serve();
  ASSERT_TRUE(os::send_signal(server_->process(), SIGSTOP).has_value());
  const BootTime begun = clock().boot();
  const Error error = refusal(target, std::chrono::seconds{2});
  EXPECT_EQ(error.code, Code::timed_out) << error.one_line();
  EXPECT_GT(seconds(clock().boot() - begun), 1.9);
  EXPECT_LT(seconds(clock().boot() - begun), 20.0);
}

TEST_P(Transport, WaitsForABusyServer) {
  Target target = serve({.config = "MaxStartups 1:100:1\nLoginGraceTime 6\n"});
  // Takes the only remote until LoginGraceTime ends it: whoever is shown the banner has it.
  Result<os::Fd> idle = os::Fd{};
  for (std::string said; !said.starts_with("SSH-");) {
    idle = os::connect_tcp("127.0.0.1", target.port, in(k_patience), clock());
    ASSERT_TRUE(idle.has_value());
    ASSERT_TRUE(*os::wait_ready(idle->get(), true, false, k_patience));
    std::array<std::byte, 64> buffer;
    said = as_text(ByteView{buffer}.first(os::read_now(idle->get(), buffer)->bytes));
  }
  const Error error = refusal(target, std::chrono::seconds{1});
  EXPECT_EQ(error.code, Code::host_unreachable) << error.one_line();
  const auto channel = open(target, "echo in");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes, "in\n");
}

TEST_P(Transport, UsesAnRsaUserKeyOrSaysWhyNot) {
  test::make_key(dir_.path(), "rsa", "rsa");
  Target target = serve({.accepted = {"rsa"}});
  target.identities = {dir_.path() / "rsa"};
  if (libssh2()) {
    const Error error = refusal(target);
    EXPECT_EQ(error.code, Code::unsupported);
    EXPECT_THAT(error.message, HasSubstr("ssh-rsa"));
    target.transport = TransportKind::automatic;
  }
  const auto channel = open(target, "echo rsa");
  ASSERT_TRUE(channel);
  EXPECT_EQ(channel->transport(), TransportKind::system);
  EXPECT_EQ(converse(*channel).bytes, "rsa\n");
}

TEST_P(Transport, UsesAServerWithAnRsaHostKeyOnlyOrSaysWhyNot) {
  Target target = serve({.host_keys = {"rsa"}}, "rsa");
  if (libssh2()) {
    const Error error = refusal(target);
    EXPECT_EQ(error.code, Code::unsupported);
    EXPECT_THAT(error.message, HasSubstr("ssh-rsa"));
    target.transport = TransportKind::automatic;
  }
  const auto channel = open(target, "echo rsa");
  ASSERT_TRUE(channel);
  EXPECT_EQ(channel->transport(), TransportKind::system);
  EXPECT_EQ(converse(*channel).bytes, "rsa\n");
  const auto keys = scan_host_keys(target, in(k_patience), clock());
  ASSERT_TRUE(keys.has_value()) << keys.error().one_line();
  EXPECT_EQ(keys->at(0), server_->host_key("rsa"));
}

TEST_P(Transport, UsesAServerWithAeadCiphersOnlyOrSaysWhyNot) {
  Target target = serve({.config = "Ciphers aes256-gcm@openssh.com\n"});
  if (libssh2()) {
    const Error error = refusal(target);
    EXPECT_EQ(error.code, Code::unsupported) << error.one_line();
    EXPECT_THAT(error.message, HasSubstr("aes256-gcm"));
    target.transport = TransportKind::automatic;
  }
  const auto channel = open(target, "echo gcm");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes, "gcm\n");
}

TEST_P(Transport, SaysThatAKeyIsEncryptedAndUsesItFromTheAgent) {
  const os::Path plain = test::make_key(dir_.path(), "plain", "ed25519");
  const test::SshAgent agent{dir_.path(), plain};
  const os::Path locked = dir_.path() / "locked";
  for (const char* suffix : {"", ".pub"}) {
    const auto text = os::read_file(plain.native() + suffix);
    ASSERT_TRUE(os::write_file_atomically(locked.native() + suffix, text.value()).has_value());
  }
  ASSERT_TRUE(os::run({"ssh-keygen", "-q", "-p", "-a", "1", "-P", "", "-N", "secret", "-f", locked.native()})
                  ->status.success());
  Target target = serve({.accepted = {"locked"}});
  target.identities = {locked};
  const Error error = refusal(target);
  EXPECT_EQ(error.code, Code::auth_refused) << error.one_line();
  if (libssh2()) {
    EXPECT_THAT(error.message, HasSubstr("encrypted"));
    EXPECT_THAT(error.hint, HasSubstr("ssh-add"));
  }
  target.agent_socket = agent.socket();
  const auto channel = open(target, "echo agent");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes, "agent\n");
}

TEST_P(Transport, TakesAnIdentityOfTheAgentThatIsInNoFile) {
  const os::Path key = test::make_key(dir_.path(), "held", "ed25519");
  const test::SshAgent agent{dir_.path(), key};
  Target target = serve({.accepted = {"held"}});
  target.identities = {};
  target.identities_only = false;
  target.agent_socket = agent.socket();
  const auto channel = open(target, "echo held");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes, "held\n");
}

TEST_P(Transport, GoesThroughAJumpHostOrSaysWhyNot) {
  Target target = serve();
  const auto jump = SshServer::start(dir_.path(), "jump");
  Target jump_target = jump->target(GetParam());
  jump_target.known_hosts = dir_.path() / "user_known_hosts";
  const HostKey key = jump->host_key("ed25519");
  ASSERT_TRUE(pin(jump_target, {&key, 1}).has_value());
  ASSERT_TRUE(os::write_file_atomically(target.config, "Host bastion\nHostName 127.0.0.1\nPort " +
                                                           std::to_string(jump->port()) + "\nIdentityFile " +
                                                           (dir_.path() / "user").native() + "\nUserKnownHostsFile " +
                                                           jump_target.known_hosts.native() + "\n")
                  .has_value());
  target.jump = "bastion";
  target.proxied = true;
  const auto scanned = scan_host_keys(target, in(k_patience), clock());
  ASSERT_TRUE(scanned.has_value()) << scanned.error().one_line();
  ASSERT_TRUE(pin(target, *scanned).has_value());
  if (libssh2()) {
    EXPECT_EQ(refusal(target).code, Code::unsupported);
    target.transport = TransportKind::automatic;
  }
  const auto channel = open(target, "echo through");
  ASSERT_TRUE(channel);
  EXPECT_EQ(converse(*channel).bytes, "through\n");
}

TEST_P(Transport, LogsInTwentyTimesAtOnce) {
  const Target target = serve();
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 20; ++i)
    threads.emplace_back([&] {
      auto channel = connect(target, "echo x", in(k_patience), clock());
      if (channel && converse(**channel).bytes == "x\n") ++good;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, 20);
}

TEST_P(Transport, ScansBothKeysOfAServer) {
  const Target target = serve();
  const auto keys = scan_host_keys(target, in(k_patience), clock());
  ASSERT_TRUE(keys.has_value()) << keys.error().one_line();
  EXPECT_THAT(*keys, ::testing::ElementsAre(server_->host_key("ed25519"), server_->host_key("ecdsa")));
}

}  // namespace
}  // namespace gridctl::ssh::transport_test
