// SPDX-License-Identifier: Apache-2.0
// What the ssh program is told, and what is made of its answers: a script stands in for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "fake_ssh.hpp"
#include "ssh/encoding.hpp"
#include "ssh/known_hosts.hpp"
#include "ssh/system_ssh.hpp"
#include "support/results.hpp"

namespace gridctl::ssh::ssh_program_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

os::Clock& clock() { return os::system_clock(); }
BootTime soon() { return clock().boot() + std::chrono::seconds{20}; }

Target box() {
  Target target;
  target.alias = "box";
  target.host = "10.0.0.7";
  target.user = "ann";
  return target;
}

HostKey key(const std::string& type) {
  std::string blob;
  append_text(blob, type);
  append_text(blob, "x");
  return make_host_key(type, encode_base64(blob)).value();
}

TEST(SshProgram, IsToldWhomToTrustAndWhatToRun) {
  const FakeSsh ssh("echo 'Authenticated to box' >&2; cat");
  Target target = box();
  target.port = 2222;
  target.config = "/my/config";
  target.known_hosts = "/pins/100%";
  target.identities = {"/keys/one", "/keys/two"};
  target.identities_only = true;
  target.agent_socket = "/run/agent";
  target.jump = "gate";
  target.connect_timeout = std::chrono::seconds{7};
  ASSERT_THAT(connect_system(target, {}, "run me", soon(), clock()), IsOk());
  for (const char* word : {"-T", "-x", "-a", "BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes",
                           "UserKnownHostsFile=\"/pins/100%%\"", "GlobalKnownHostsFile=/dev/null", "RemoteCommand=none",
                           "HostKeyAlias=[10.0.0.7]:2222@gate", "IdentityAgent=\"/run/agent\"", "ConnectTimeout=7",
                           "KnownHostsCommand=none", "LogLevel=VERBOSE", "ControlPath=none"})
    EXPECT_TRUE(ssh.was_told(word)) << word;
  const std::string all = join(ssh.words(), " ");
  EXPECT_THAT(all, HasSubstr("-F /my/config"));
  EXPECT_THAT(all, HasSubstr("-i /keys/one -i /keys/two"));
  EXPECT_THAT(all, HasSubstr("-J gate -p 2222 -l ann -- box run me"));
}

TEST(SshProgram, IsToldNothingThatTheTargetDoesNotSay) {
  const FakeSsh ssh("echo 'Authenticated to box' >&2; cat");
  ASSERT_THAT(connect_system(box(), {}, "true", soon(), clock()), IsOk());
  for (const char* word : {"-F", "-i", "-J", "IdentitiesOnly=yes"}) EXPECT_FALSE(ssh.was_told(word)) << word;
  EXPECT_TRUE(ssh.was_told("IdentityAgent=none"));
  EXPECT_TRUE(ssh.was_told("UserKnownHostsFile=\"/dev/null\""));
}

TEST(SshProgram, GetsWholeSecondsUntilTheDeadlineAndOneAtLeast) {
  const FakeSsh ssh("echo 'Authenticated to box' >&2; cat");
  Target target = box();
  target.connect_timeout = std::chrono::milliseconds{2500};
  ASSERT_THAT(connect_system(target, {}, "true", soon(), clock()), IsOk());
  EXPECT_TRUE(ssh.was_told("ConnectTimeout=3"));
  target.connect_timeout = Duration::zero();
  ASSERT_THAT(connect_system(target, {}, "true", soon(), clock()), IsOk());
  EXPECT_TRUE(ssh.was_told("ConnectTimeout=1"));
}

TEST(SshProgram, CarriesTheStreamOnceItIsIn) {
  const FakeSsh ssh("echo 'Connecting to box' >&2; echo 'Authenticated to box (via proxy).' >&2; head -c 2; exit 3");
  auto channel = connect_system(box(), {}, "cat", soon(), clock());
  ASSERT_THAT(channel, IsOk());
  EXPECT_EQ((*channel)->peer(), "ann@10.0.0.7:22");
  EXPECT_EQ((*channel)->stderr_tail(), "") << "what it says of its login is not the command's";
  ASSERT_THAT((*channel)->write(as_bytes("hi")), IsOk());
  std::string said;
  std::array<std::byte, 16> buffer;
  for (;;) {
    const auto got = (*channel)->read(buffer);
    ASSERT_THAT(got, IsOk()) << "the status 3 is the command's own";
    if (*got && **got == 0) break;
    if (*got) said += as_text(ByteView{buffer}.first(**got));
  }
  EXPECT_EQ(said, "hi");
}

Error end_of(const std::string& after_login) {
  const FakeSsh ssh("echo 'Authenticated to box' >&2; " + after_login);
  auto channel = connect_system(box(), {}, "cat", soon(), clock());
  EXPECT_THAT(channel, IsOk());
  std::array<std::byte, 16> buffer;
  for (;;) {
    const auto got = (*channel)->read(buffer);
    if (!got) return got.error();
    if (*got && **got == 0) return make_error(Code::internal, "a good end");
  }
}

TEST(SshProgram, TellsABrokenConnectionByItsStatus) {
  EXPECT_EQ(end_of("exit 254").message, "a good end");
  const Error broken = end_of("echo 'client_loop: send disconnect' >&2; exit 255");
  EXPECT_EQ(broken.code, Code::host_unreachable);
  EXPECT_THAT(broken.message, HasSubstr("ann@10.0.0.7:22 broke"));
  EXPECT_THAT(broken.message, HasSubstr("client_loop: send disconnect"));
  EXPECT_THAT(end_of("exit 255").message, HasSubstr("ssh gave no reason"));
  EXPECT_EQ(end_of("kill -9 $$").code, Code::host_unreachable);
}

TEST(SshProgram, IsInHoweverMuchItsCommandHasWrittenSince) {
  const FakeSsh ssh(
      "words=$(mktemp)\n"
      "{ echo 'Authenticated to box'; head -c 40000 /dev/zero | tr '\\0' e; echo END; } > \"$words\"\n"
      "cat \"$words\" >&2; rm \"$words\"; echo done");
  auto channel = connect_system(box(), {}, "true", soon(), clock());
  ASSERT_THAT(channel, IsOk());
  std::array<std::byte, 16> buffer;
  std::string said;
  for (auto got = (*channel)->read(buffer); got && (!*got || **got > 0); got = (*channel)->read(buffer))
    if (*got) said += as_text(ByteView{buffer}.first(**got));
  EXPECT_EQ(said, "done\n");
  EXPECT_THAT((*channel)->stderr_tail(), ::testing::EndsWith("eeeEND\n"));
  EXPECT_EQ((*channel)->stderr_tail().size(), k_stderr_kept);
}

TEST(SshProgram, SaysWhyItDidNotGetIn) {
  const FakeSsh ssh("echo 'ann@box: Permission denied (publickey).' >&2; exit 255");
  const auto refused = connect_system(box(), {}, "true", soon(), clock());
  ASSERT_THAT(refused, FailsWith(Code::auth_refused));
  EXPECT_THAT(refused.error().message, HasSubstr("accepts none of our keys: ann@box"));
}

TEST(SshProgram, IsNotBelievedAmongOtherWords) {
  const FakeSsh ssh("echo 'it says Authenticated to box' >&2; exit 255");
  EXPECT_THAT(connect_system(box(), {}, "true", soon(), clock()), FailsWith(Code::host_unreachable));
}

TEST(SshProgram, IsStoppedAtTheDeadlineAndWithAFloodOfWords) {
  {
    const FakeSsh ssh("echo still here >&2; exec sleep 60");
    const auto late = connect_system(box(), {}, "true", clock().boot() + std::chrono::milliseconds{300}, clock());
    ASSERT_THAT(late, FailsWith(Code::timed_out));
    EXPECT_THAT(late.error().message, HasSubstr("took too long"));
  }
  {
    const FakeSsh ssh("while echo 'a banner without an end' >&2; do :; done");
    EXPECT_THAT(connect_system(box(), {}, "true", soon(), clock()), FailsWith(Code::protocol_violation));
  }
}

TEST(SshProgram, MayBeMissing) {
  const gridctl::testing::TempDir empty;
  const Variable path("PATH", empty.path().native());
  for (const Error& error :
       {connect_system(box(), {}, "true", soon(), clock()).error(), scan_with_system(box(), soon(), clock()).error()}) {
    EXPECT_EQ(error.code, Code::host_unreachable);
    EXPECT_EQ(error.hint, "apt-get install openssh-client");
  }
  EXPECT_EQ(key_known_to_user(box(), soon(), clock()), std::nullopt);
}

TEST(SshProgram, HasHostKeyCommandsSinceVersionEightFive) {
  EXPECT_TRUE(knows_host_key_commands("OpenSSH_9.2p1 Debian-2, OpenSSL 3.0"));
  EXPECT_TRUE(knows_host_key_commands("OpenSSH_8.5p1"));
  EXPECT_TRUE(knows_host_key_commands("OpenSSH_10.0"));
  EXPECT_TRUE(knows_host_key_commands("another ssh")) << "it is taken for a new one";
  EXPECT_FALSE(knows_host_key_commands("OpenSSH_8.4p1 Debian-5"));
  EXPECT_FALSE(knows_host_key_commands("OpenSSH_7.9p1"));
}

// Writes what a host shows into the file of pins that it is given.
std::string showing(const std::string& lines) {
  return "for word in \"$@\"; do case $word in UserKnownHostsFile=*) file=${word#*=\\\"}; file=${file%\\\"};; esac; "
         "done\n"
         "echo \"$file\" > " +
         std::string("${0%/*}/file; printf '") + lines + "' > \"$file\"; exit 255";
}

TEST(Scan, GivesTheKeysThatSshWroteDownAndLeavesNoFile) {
  const HostKey rsa = key("ssh-rsa"), best = key("ssh-ed25519");
  const FakeSsh ssh(showing("10.0.0.7 ssh-rsa " + rsa.blob + "\\n10.0.0.7 ssh-ed25519 " + best.blob + "\\n"));
  const auto keys = scan_with_system(box(), soon(), clock());
  ASSERT_THAT(keys, IsOk());
  EXPECT_THAT(*keys, ::testing::ElementsAre(best, rsa));
  EXPECT_TRUE(ssh.was_told("StrictHostKeyChecking=accept-new"));
  EXPECT_TRUE(ssh.was_told("PreferredAuthentications=none"));
  EXPECT_THAT(join(ssh.words(), " "), HasSubstr("-- box true"));
  const std::string file{trim(os::read_file(ssh.dir() / "file").value())};
  EXPECT_FALSE(file.empty());
  EXPECT_FALSE(os::exists(file));
}

TEST(Scan, SaysWhyThereIsNoKey) {
  {
    const FakeSsh ssh("echo 'ssh: connect to host 10.0.0.7 port 22: Connection refused' >&2; exit 255");
    const auto refused = scan_with_system(box(), soon(), clock());
    ASSERT_THAT(refused, FailsWith(Code::host_unreachable));
    EXPECT_THAT(refused.error().message, HasSubstr("connection refused"));
  }
  {
    const FakeSsh ssh(showing("elsewhere ssh-ed25519 " + key("ssh-ed25519").blob + "\\n"));
    EXPECT_THAT(scan_with_system(box(), soon(), clock()), FailsWith(Code::host_unreachable));
  }
  {
    const FakeSsh ssh("exec sleep 60");
    const auto late = scan_with_system(box(), clock().boot() + std::chrono::milliseconds{200}, clock());
    ASSERT_THAT(late, FailsWith(Code::timed_out));
    EXPECT_THAT(late.error().message, HasSubstr("asking 10.0.0.7:22 for its host key took too long"));
  }
}

TEST(UserTrust, AsksWithoutLoggingIn) {
  const FakeSsh ssh(
      "echo 'debug1: Server host key: ssh-ed25519 SHA256:abc' >&2\n"
      "echo \"debug1: Host 'box' is known and matches the ED25519 host key.\" >&2; exit 255");
  Target target = box();
  target.jump = "gate";
  target.config = "/my/config";
  target.port = 2222;
  EXPECT_EQ(key_known_to_user(target, soon(), clock()), "SHA256:abc");
  for (const char* word : {"BatchMode=yes", "StrictHostKeyChecking=yes", "PreferredAuthentications=none",
                           "UpdateHostKeys=no", "ConnectTimeout=10"})
    EXPECT_TRUE(ssh.was_told(word)) << word;
  const std::string all = join(ssh.words(), " ");
  EXPECT_THAT(all, HasSubstr("-F /my/config"));
  EXPECT_THAT(all, HasSubstr("-J gate -p 2222 -l ann -- box true"));
  const FakeSsh plain("exit 255");
  EXPECT_EQ(key_known_to_user(box(), soon(), clock()), std::nullopt);
  EXPECT_FALSE(plain.was_told("-F"));
  EXPECT_FALSE(plain.was_told("-J"));
  const FakeSsh hangs("exec sleep 60");
  EXPECT_EQ(key_known_to_user(box(), clock().boot() + std::chrono::milliseconds{200}, clock()), std::nullopt);
}

TEST(UserTrust, ReadsTheKeyOfTheHostItselfAndNotOfItsJumpHost) {
  const std::string jump =
      "debug1: Server host key: ssh-rsa SHA256:jump\r\ndebug1: Host 'gate' is known and matches the RSA host key.\r\n";
  const auto shown = [](const std::string& what) {
    return "debug1: Server host " + what + "\r\ndebug1: Host 'box' is known and matches the ED25519 host key.\r\n";
  };
  EXPECT_EQ(parse_recognised_key(jump + shown("key: ssh-ed25519 SHA256:own")), "SHA256:own");
  EXPECT_EQ(parse_recognised_key(shown("certificate: ssh-ed25519-cert-v01 SHA256:own, serial 0 ID \"h\"")),
            "SHA256:own");
  EXPECT_EQ(parse_recognised_key("Server host certificate: x SHA256:one, \n" + shown("key: ssh-ed25519 SHA256:two")),
            "SHA256:two");
  EXPECT_EQ(parse_recognised_key("debug1: Server host key: ssh-ed25519 SHA256:own\r\n"), std::nullopt);
  EXPECT_EQ(parse_recognised_key(shown("key: ssh-ed25519 MD5:own")), std::nullopt);
  EXPECT_EQ(parse_recognised_key("SHA256:x is known and matches the "), std::nullopt);
  EXPECT_EQ(parse_recognised_key(""), std::nullopt);
}

}  // namespace
}  // namespace gridctl::ssh::ssh_program_test
