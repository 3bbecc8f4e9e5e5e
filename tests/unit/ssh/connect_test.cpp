// SPDX-License-Identifier: Apache-2.0
// Connecting: what a server says instead of a handshake, by one that is scripted; logins and channels, by a real sshd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "fake_ssh.hpp"
#include "os/net.hpp"
#include "ssh/connect.hpp"
#include "ssh/encoding.hpp"
#include "ssh/libssh2_session.hpp"
#include "support/loopback.hpp"
#include "support/results.hpp"
#include "support/ssh_server.hpp"

namespace gridctl::ssh::connect_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

os::Clock& clock() { return os::system_clock(); }
BootTime in(Duration duration) { return clock().boot() + duration; }
BootTime soon() { return in(std::chrono::seconds{20}); }

// Says its words to whoever connects; then it closes, or stays silent until it is destroyed.
class Saying {
 public:
  Saying(const std::string& words, bool closes) : listener_(os::listen_loopback().value()) {
    thread_ = std::thread([this, words, closes] {
      std::vector<os::Fd> silent;
      for (;;) {
        os::Fd fd{::accept(listener_.first.get(), nullptr, nullptr)};
        if (!fd.valid()) return;
        (void)os::write_all(fd.get(), as_bytes(words));
        std::array<char, 4096> asked;
        if (!closes) silent.push_back(std::move(fd));
        else if (::shutdown(fd.get(), SHUT_WR) == 0)
          while (::recv(fd.get(), asked.data(), asked.size(), 0) > 0) continue;  // else what was said may get lost
      }
    });
  }
  ~Saying() {
    ::shutdown(listener_.first.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] Target target() const {
    Target target;
    target.host = "127.0.0.1";
    target.port = listener_.second;
    target.connect_timeout = std::chrono::seconds{20};
    return target;
  }

 private:
  std::pair<os::Fd, std::uint16_t> listener_;
  std::thread thread_;
};

struct Refused {
  Error error;
  bool lacks = false;
};

Refused refusal(const Saying& server, BootTime deadline, const std::vector<std::string>& types,
                Duration connect_timeout = std::chrono::seconds{20}) {
  Target target = server.target();
  target.connect_timeout = connect_timeout;
  bool lacks = false;
  const auto session = Session::open(target, types, deadline, clock(), &lacks);
  EXPECT_FALSE(session.has_value());
  return {session ? make_error(Code::internal, "connected") : session.error(), lacks};
}

Error refusal(const std::string& words, bool closes = true) {
  const Saying server(words, closes);
  return refusal(server, closes ? soon() : in(std::chrono::milliseconds{200}), libssh2_host_key_types()).error;
}

TEST(Handshake, TellsWhatAServerSaysInstead) {
  for (const auto& [words, code, told] : std::vector<std::tuple<std::string, Code, std::string>>{
           {"Exceeded MaxStartups\r\n", Code::busy, "is busy with other logins"},
           {"Not allowed at this time\r\n", Code::busy, "refuses connections from here for a while"},
           {"HTTP/1.1 400 Bad Request\r\n\x1b[31m" + std::string(200, 'x'), Code::host_unreachable,
            "is not an SSH server: it answered 'HTTP/1.1 400 Bad Request"},
           {std::string(20'000, 'n'), Code::host_unreachable, "is not an SSH server"},
           {"", Code::busy, "closed the connection without sending anything"},
           {"SSH-2.0-x\r\n", Code::host_unreachable, "the SSH handshake with 127.0.0.1:"}}) {
    const Error error = refusal(words);
    EXPECT_EQ(error.code, code) << words.substr(0, 40) << ": " << error.one_line();
    EXPECT_THAT(error.message, HasSubstr(told));
    EXPECT_THAT(error.message, Not(HasSubstr("\x1b")));
  }
}

TEST(Handshake, TellsSilenceFromASlowBeginning) {
  const Error silent = refusal("", false);
  EXPECT_EQ(silent.code, Code::timed_out);
  EXPECT_THAT(silent.message, HasSubstr("sends nothing"));
  const Error begun = refusal("SSH-2.0-x\r\n", false);
  EXPECT_EQ(begun.code, Code::timed_out);
  EXPECT_THAT(begun.message, HasSubstr("started SSH but did not finish"));
  EXPECT_THAT(refusal("hello?\r\n", false).message, HasSubstr("is not an SSH server"));
}

std::string kexinit(const std::vector<std::string>& lists) {
  std::string payload{"\x14"};
  payload += std::string(16, 'c');
  for (const std::string& list : lists) append_text(payload, list);
  payload += std::string(5, '\0');
  std::string packet;
  const std::size_t padding = 4 + (8 - (payload.size() + 5 + 4) % 8) % 8;
  append_number(packet, static_cast<std::uint32_t>(payload.size() + 1 + padding));
  packet += static_cast<char>(padding);
  return packet + payload + std::string(padding, '\0');
}

std::string offering(const std::string& host_keys, const std::string& cipher = "aes128-ctr") {
  return "SSH-2.0-x\r\n" + kexinit({"curve25519-sha256", host_keys, cipher, cipher, "hmac-sha2-256", "hmac-sha2-256",
                                    "none", "none", "", ""});
}

TEST(Handshake, TellsWhatIsNotInCommon) {
  const std::vector<std::string> ours = {"ssh-ed25519"};
  for (const auto& [host_keys, lacks] :
       {std::pair{"ecdsa-sha2-nistp256", true}, {"ssh-ed25519-cert-v01@openssh.com", false}}) {
    const Saying server(offering(host_keys), false);
    const Refused refused = refusal(server, soon(), ours);
    EXPECT_EQ(refused.error.code, Code::unsupported) << refused.error.one_line();
    EXPECT_THAT(refused.error.message, HasSubstr(std::string("it offers only host keys ") + host_keys));
    EXPECT_EQ(refused.lacks, lacks) << host_keys;
  }
  const Saying server(offering("ssh-ed25519", "aes256-gcm@openssh.com"), false);
  const Refused refused = refusal(server, soon(), ours);
  EXPECT_EQ(refused.error.code, Code::unsupported);
  EXPECT_FALSE(refused.lacks);
  const Saying mute("SSH-2.0-x\r\n", true);
  EXPECT_FALSE(refusal(mute, soon(), ours).lacks);
  EXPECT_THAT(refusal(mute, soon(), {"no-such-type"}).error.message, HasSubstr("libssh2 supports none of no-such-type"));
}

TEST(Handshake, HasAsLongAsTheDeadlineForAServerThatSpeaks) {
  const Saying silent("", false), speaking("SSH-2.0-x\r\n", false);
  const auto brief = std::chrono::milliseconds{50};
  const BootTime before = clock().boot();
  EXPECT_THAT(refusal(silent, soon(), libssh2_host_key_types(), brief).error.message, HasSubstr("sends nothing"));
  EXPECT_LT(clock().boot() - before, std::chrono::seconds{15});
  const BootTime deadline = in(std::chrono::milliseconds{300});
  EXPECT_THAT(refusal(speaking, deadline, libssh2_host_key_types(), brief).error.message, HasSubstr("started SSH"));
  EXPECT_GE(clock().boot(), deadline);
}

// Sends all of `input`, then closes, while it reads to the end.
Result<std::string> converse(Channel& channel, std::string_view input = {}) {
  std::string said;
  std::vector<std::byte> buffer(200 * 1024);
  bool closed = false;
  for (const BootTime deadline = soon(); clock().boot() < deadline;) {
    if (!input.empty()) {
      TRY_ASSIGN(const auto wrote, channel.write(as_bytes(input)));
      input.remove_prefix(wrote.value_or(0));
    } else if (!closed) {
      closed = true;
      channel.close_write();
    }
    TRY_ASSIGN(const auto got, channel.read(buffer));
    if (got && *got == 0) return said;
    if (got) {
      said += as_text(ByteView{buffer}.first(*got));
      continue;
    }
    std::vector<os::Poll> polls;
    for (const Watched& watched : channel.wants(!input.empty())) polls.push_back({watched.fd, watched.interest, {}});
    TRY_ASSIGN(const bool told, os::wait_any(polls, in(std::chrono::seconds{10}), clock()));
    if (!told) return make_error(Code::timed_out, "no descriptor told of anything");
  }
  return make_error(Code::timed_out, "it does not end");
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 12345;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

class WithSshd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!os::exists("/usr/sbin/sshd")) GTEST_SKIP() << "there is no sshd";
  }
  Target serve(test::ServerOptions options = {}, TransportKind transport = TransportKind::libssh2) {
    server_ = test::SshServer::start(dir_.path(), "server", std::move(options));
    Target target = server_->target(transport);
    const HostKey key = server_->host_key("ed25519");
    EXPECT_THAT(pin(target, {&key, 1}), IsOk());
    return target;
  }
  static Error refused(const Target& target) {
    const auto channel = connect(target, "true", soon(), clock());
    EXPECT_FALSE(channel.has_value());
    return channel ? make_error(Code::internal, "connected") : channel.error();
  }
  os::Path key(const std::string& name, const std::string& type = "ed25519", const std::string& passphrase = {}) {
    return test::make_key(dir_.path(), name, type, passphrase);
  }
  test::TempDir dir_;
  std::unique_ptr<test::SshServer> server_;
};

TEST_F(WithSshd, BothTransportsCarryMuchBothWays) {
  Target target = serve({.config = "RekeyLimit 512K\n"});
  const std::string input = pattern(1u << 20);
  for (const TransportKind kind : {TransportKind::libssh2, TransportKind::system, TransportKind::automatic}) {
    target.transport = kind;
    const auto channel = connect(target, "echo begun >&2; cat", soon(), clock());
    ASSERT_THAT(channel, IsOk());
    EXPECT_EQ((*channel)->transport(), kind == TransportKind::automatic ? TransportKind::libssh2 : kind);
    EXPECT_EQ((*channel)->peer(), target.peer());
    EXPECT_TRUE((*channel)->flushed());
    const auto back = converse(**channel, input);
    ASSERT_THAT(back, IsOk());
    EXPECT_TRUE(*back == input) << back->size();
    EXPECT_THAT((*channel)->stderr_tail(), ::testing::StartsWith("begun\n"));
  }
}

TEST_F(WithSshd, OutputIsNotCutWhereTheCommandIsFasterThanItsReader) {
  const Target target = serve();
  const auto channel =
      connect(target, "head -c 5000000 /dev/zero; head -c 3000000 /dev/zero >&2; printf END", soon(), clock());
  ASSERT_THAT(channel, IsOk());
  const auto said = converse(**channel);
  ASSERT_THAT(said, IsOk());
  EXPECT_EQ(said->size(), 5'000'003u);
  EXPECT_EQ((*channel)->stderr_tail().size(), k_stderr_kept);
}

TEST_F(WithSshd, AChannelWaitsForWhatItStillHasToDo) {
  const Target target = serve();
  const auto opened = connect(target, "sleep 0.2; cat", soon(), clock());
  ASSERT_THAT(opened, IsOk());
  Channel& channel = **opened;
  std::array<std::byte, 16> buffer;
  EXPECT_EQ(channel.read(buffer).value(), std::nullopt);
  ASSERT_EQ(channel.wants(false).size(), 1u);
  EXPECT_TRUE(channel.wants(false)[0].interest.read);
  EXPECT_FALSE(channel.wants(false)[0].interest.write);
  EXPECT_TRUE(channel.wants(true)[0].interest.write);
  EXPECT_EQ(channel.write(as_bytes("hi")).value(), 2u);
  channel.keepalive(clock().boot());
  channel.keepalive(clock().boot() + std::chrono::seconds{60});
  EXPECT_EQ(converse(channel).value(), "hi");
  EXPECT_TRUE(channel.flushed());
  EXPECT_FALSE(channel.wants(true)[0].interest.write) << "its input has ended";
}

TEST_F(WithSshd, ABrokenConnectionIsAnErrorAndStaysOne) {
  Target target = serve();
  const auto channel = connect(target, "cat", soon(), clock());
  ASSERT_THAT(channel, IsOk());
  server_->stop();
  std::array<std::byte, 16> buffer;
  Result<std::optional<std::size_t>> got = std::optional<std::size_t>{};
  for (const BootTime deadline = soon(); got && !*got && clock().boot() < deadline;) {
    got = (*channel)->read(buffer);
    if (got && !*got) (void)os::wait_ready((*channel)->wants(false)[0].fd, true, false, std::chrono::seconds{1});
  }
  ASSERT_THAT(got, FailsWith(Code::host_unreachable));
  EXPECT_THAT(got.error().message, HasSubstr(target.peer() + " broke while"));
  EXPECT_THAT((*channel)->write(as_bytes("x")), FailsWith(Code::host_unreachable));
  (*channel)->keepalive(clock().boot() + std::chrono::seconds{60});
  EXPECT_THAT((*channel)->read(buffer), FailsWith(Code::host_unreachable));
}

TEST_F(WithSshd, TheHostKeyDecides) {
  Target target = serve();
  key("other-host-ed25519");
  const HostKey own = server_->host_key("ed25519");
  ASSERT_THAT(pin(target, {}), IsOk());
  EXPECT_THAT(refused(target).message, AllOf(HasSubstr("no key is pinned"), HasSubstr(own.fingerprint)));
  HostKey other = server_->host_key("ecdsa");
  ASSERT_THAT(pin(target, {&other, 1}), IsOk());
  EXPECT_THAT(connect(target, "true", soon(), clock()), IsOk()) << "another key of the host is as good";
  const std::vector<std::string> words = split(os::read_file(dir_.path() / "other-host-ed25519.pub").value(), ' ');
  other.type = words[0];
  other.blob = words[1];
  ASSERT_THAT(pin(target, {&other, 1}), IsOk());
  const Error changed = refused(target);
  EXPECT_EQ(changed.code, Code::host_key_mismatch);
  EXPECT_THAT(changed.message, AllOf(HasSubstr("has changed"), HasSubstr(own.fingerprint)));
}

TEST_F(WithSshd, APinOfATypeThatTheHostHasNoMoreIsAChange) {
  Target target = serve({.host_keys = {"ed25519"}});
  const std::vector<std::string> words = split(os::read_file(key("gone", "ecdsa").native() + ".pub").value(), ' ');
  const HostKey gone{words[0], words[1], ""};
  ASSERT_THAT(pin(target, {&gone, 1}), IsOk());
  const Error changed = refused(target);
  EXPECT_EQ(changed.code, Code::host_key_mismatch);
  EXPECT_THAT(changed.message, HasSubstr("the host shows ssh-ed25519 " + server_->host_key("ed25519").fingerprint));
}

TEST_F(WithSshd, ScansTheBestKeyFirstAndOnlyWhatThereIs) {
  Target target = serve();
  EXPECT_THAT(*scan_host_keys(target, soon(), clock()),
              ::testing::ElementsAre(server_->host_key("ed25519"), server_->host_key("ecdsa")));
  server_.reset();
  target = serve({.host_keys = {"ed25519"}});
  EXPECT_THAT(*scan_host_keys(target, soon(), clock()), ::testing::ElementsAre(server_->host_key("ed25519")));
  server_->stop();
  EXPECT_THAT(scan_host_keys(target, soon(), clock()), FailsWith(Code::host_unreachable));
}

TEST_F(WithSshd, SaysWhichKeysItOfferedAndWhyNotOthers) {
  Target target = serve();
  target.identities = {key("stranger"), dir_.path() / "none", key("locked", "ed25519", "secret")};
  const Error error = refused(target);
  EXPECT_EQ(error.code, Code::auth_refused);
  EXPECT_THAT(error.message, AllOf(HasSubstr("accepts none of our keys: offered "), HasSubstr("stranger (SHA256:"),
                                   HasSubstr("locked is encrypted and no ssh-agent holds it"), HasSubstr("none")));
  EXPECT_EQ(error.hint, "ssh-add " + shell_quote((dir_.path() / "locked").native()));
  target.identities = {key("stranger")};
  EXPECT_EQ(refused(target).hint, copy_id_command(target));
}

TEST_F(WithSshd, SaysThatThereWasNoKeyToOffer) {
  Target target = serve();
  target.identities = {};
  const Error none = refused(target);
  EXPECT_EQ(none.code, Code::auth_refused);
  EXPECT_THAT(none.message, HasSubstr("there was no key to offer"));
  target.agent_socket = dir_.path() / "no-agent";
  const Error gone = refused(target);
  EXPECT_THAT(gone.message, HasSubstr("ssh-agent does not answer at"));
  EXPECT_THAT(gone.hint, HasSubstr("ssh-agent"));
}

TEST_F(WithSshd, OffersFiveKeysAtMost) {
  Target target = serve({.config = "MaxAuthTries 20\n"});
  target.identities.clear();
  for (int i = 0; i < 5; ++i) target.identities.push_back(key("stranger" + std::to_string(i)));
  target.identities.push_back(dir_.path() / "user");
  const Error error = refused(target);
  EXPECT_EQ(error.code, Code::auth_refused);
  EXPECT_THAT(error.message, AllOf(HasSubstr("stranger4"), Not(HasSubstr("/user"))));
  target.identities.erase(target.identities.begin());
  EXPECT_THAT(connect(target, "true", soon(), clock()), IsOk()) << "the fifth is the right one";
}

TEST_F(WithSshd, LeavesToTheSshProgramWhatItCannotDo) {
  Target target = serve();
  target.identities = {key("old", "rsa")};
  const Error rsa = refused(target);
  EXPECT_EQ(rsa.code, Code::unsupported);
  EXPECT_THAT(rsa.message, HasSubstr("old is an ssh-rsa key, which libssh2 cannot use"));
  target.identities = {key("certified")};
  ASSERT_THAT(os::write_file_atomically(dir_.path() / "certified-cert.pub", ""), IsOk());
  const Error certified = refused(target);
  EXPECT_EQ(certified.code, Code::unsupported);
  EXPECT_THAT(certified.message, AllOf(HasSubstr("certified has a certificate"), HasSubstr("offered ")));
  ASSERT_THAT(os::write_file_atomically(dir_.path() / "damaged",
                                        "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
              IsOk());
  target.identities = {dir_.path() / "damaged"};
  EXPECT_THAT(refused(target).message, HasSubstr("damaged cannot be read by libssh2"));
  target.proxied = true;
  EXPECT_THAT(refused(target).message, HasSubstr("behind a jump host"));
  target.proxied = false;
  target.keys_unclear = true;
  EXPECT_THAT(refused(target).message, HasSubstr("names a key file with tokens"));
}

TEST_F(WithSshd, TellsThatTheServerWantsMore) {
  const Error more =
      refused(serve({.config = "HostbasedAuthentication yes\nAuthenticationMethods publickey,hostbased\n"}));
  EXPECT_EQ(more.code, Code::auth_refused);
  EXPECT_THAT(more.message, HasSubstr("accepted our key but also asks for input that cannot be typed here: hostbased"));
  EXPECT_THAT(more.hint, HasSubstr("with a key alone"));
}

TEST_F(WithSshd, TellsThatTheServerTakesNoKeys) {
  const Error none = refused(serve({.config = "HostbasedAuthentication yes\nPubkeyAuthentication no\n"}));
  EXPECT_EQ(none.code, Code::auth_refused);
  EXPECT_THAT(none.message, HasSubstr("does not accept keys, only: hostbased"));
}

TEST_F(WithSshd, TakesKeysOfTheAgentOnlyOnce) {
  const os::Path held = key("held");
  const test::SshAgent agent(dir_.path(), held);
  Target target = serve({.accepted = {"held"}});
  target.agent_socket = agent.socket();
  target.identities = {};
  EXPECT_EQ(refused(target).code, Code::auth_refused) << "only the files that are named";
  target.identities_only = false;
  EXPECT_THAT(connect(target, "true", soon(), clock()), IsOk());
  target.identities = {held};
  target.identities_only = true;
  EXPECT_THAT(connect(target, "true", soon(), clock()), IsOk());
  server_.reset();
  target = serve();
  target.agent_socket = agent.socket();
  target.identities = {held};
  target.identities_only = false;
  const std::string message = refused(target).message;
  EXPECT_THAT(message, HasSubstr("ssh-agent's held (SHA256:"));
  EXPECT_EQ(message.find("held (SHA256:"), message.rfind("held (SHA256:")) << message;
}

TEST_F(WithSshd, FallsBackToTheSshProgramAndTellsTheBetterReason) {
  Target target = serve({}, TransportKind::automatic);
  target.identities = {key("old", "rsa")};
  {
    const FakeSsh ssh("echo 'Authenticated to box' >&2; echo by ssh");
    const auto channel = connect(target, "true", soon(), clock());
    ASSERT_THAT(channel, IsOk());
    EXPECT_EQ((*channel)->transport(), TransportKind::system);
  }
  {
    const FakeSsh ssh("echo 'Permission denied (publickey).' >&2; exit 255");
    const Error error = refused(target);
    EXPECT_EQ(error.code, Code::auth_refused);
    EXPECT_THAT(error.message, HasSubstr("Permission denied")) << "libssh2 had no more to tell";
    target.identities = {};
    target.agent_socket = "";
    EXPECT_THAT(refused(target).message, HasSubstr("there was no key to offer"));
  }
  const gridctl::testing::TempDir empty;
  const Variable path("PATH", empty.path().native());
  target.identities = {dir_.path() / "old"};
  const Error missing = refused(target);
  EXPECT_EQ(missing.hint, "apt-get install openssh-client");
  EXPECT_THAT(missing.one_line(), HasSubstr("old is an ssh-rsa key"));
}

TEST(Connecting, TriesABusyHostAgainUntilItsDeadline) {
  const Saying busy("Exceeded MaxStartups\r\n", true);
  Target target = busy.target();
  target.user = "ann";
  target.transport = TransportKind::libssh2;
  const auto given_up = connect(target, "true", in(std::chrono::milliseconds{700}), clock());
  ASSERT_THAT(given_up, FailsWith(Code::host_unreachable));
  EXPECT_EQ(given_up.error().retry, Retry::same_host_later);
  EXPECT_THAT(given_up.error().one_line(), AllOf(HasSubstr("busy with other logins"), HasSubstr("until the deadline"),
                                                 HasSubstr("while logging in to " + target.peer())));
}

TEST(Connecting, TellsWhatAServerIsThatSshCouldNotName) {
  const Saying web("HTTP/1.1 400 Bad Request\r\n", true);
  Target target = web.target();
  target.transport = TransportKind::system;
  {
    const FakeSsh ssh("echo 'kex_exchange_identification: Connection closed by remote host' >&2; exit 255");
    const auto refused = connect(target, "true", soon(), clock());
    ASSERT_THAT(refused, FailsWith(Code::host_unreachable));
    EXPECT_THAT(refused.error().message, HasSubstr("is not an SSH server"));
  }
  const FakeSsh ssh("echo 'Connection refused' >&2; exit 255");
  EXPECT_THAT(connect(target, "true", soon(), clock()).error().message, HasSubstr("nothing listens"));
}

}  // namespace
}  // namespace gridctl::ssh::connect_test
