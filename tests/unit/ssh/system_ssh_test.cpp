// SPDX-License-Identifier: Apache-2.0
#include "ssh/system_ssh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::ssh::system_ssh_test {
namespace {

Target target() {
  Target target;
  target.alias = target.host = "10.0.0.7";
  target.user = "ann";
  return target;
}

TEST(SshWords, MeanWhatTheyMean) {
  struct Case {
    const char* words;
    Code code;
  };
  for (const Case& c :
       {Case{"ssh: connect to host 10.0.0.7 port 22: Connection refused\r\n", Code::host_unreachable},
        Case{"ssh: connect to host 10.0.0.7 port 22: No route to host\r\n", Code::host_unreachable},
        Case{"ssh: connect to host 10.0.0.7 port 22: Connection timed out\r\n", Code::timed_out},
        Case{"Connection timed out during banner exchange\r\n", Code::timed_out},
        Case{"ssh: Could not resolve hostname x: Name or service not known\r\n", Code::host_unreachable},
        Case{"ann@10.0.0.7: Permission denied (publickey).\r\n", Code::auth_refused},
        Case{"Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures\r\n", Code::auth_refused},
        Case{"No ED25519 host key is known for 10.0.0.7 and you have requested strict checking.\r\nHost key "
             "verification failed.\r\n",
             Code::host_key_mismatch},
        Case{"kex_exchange_identification: Connection closed by remote host\r\n", Code::busy},
        Case{"kex_exchange_identification: read: Connection reset by peer\r\n", Code::busy},
        Case{"Unable to negotiate with 10.0.0.7 port 22: no matching cipher found. Their offer: x\r\n",
             Code::unsupported},
        Case{"/home/ann/.ssh/config: line 3: Bad configuration option: hots\r\n", Code::usage},
        Case{"something new\r\n", Code::host_unreachable}, Case{"", Code::host_unreachable}}) {
    const Error error = classify_ssh_error(target(), {}, c.words);
    EXPECT_EQ(error.code, c.code) << c.words;
    EXPECT_THAT(error.message, ::testing::Not(::testing::HasSubstr("\r")));
  }
}

TEST(SshWords, NameTheKeyThatTheHostHas) {
  const auto told = [](const char* words) { return classify_ssh_error(target(), {}, words).one_line(); };
  EXPECT_THAT(told("The fingerprint for the ED25519 key sent by the remote host is\r\nSHA256:abcDEF+/123.\r\n"
                   "Host key verification failed.\r\n"),
              ::testing::HasSubstr("SHA256:abcDEF+/123"));
  EXPECT_THAT(told("No ED25519 host key is known for 10.0.0.7 and you have requested strict checking.\r\n"
                   "Host key verification failed.\r\n"),
              ::testing::HasSubstr("a key of type ED25519"));
  EXPECT_THAT(told("SHA256:\r\nHost key verification failed.\r\n"), ::testing::HasSubstr("another one"));
}

TEST(SshWords, OfManyTheLastThreeAreQuotedWithoutOurOwnNoise) {
  const Error error = classify_ssh_error(target(), {},
                                         "Connecting to 10.0.0.7 port 22.\r\nConnection established.\r\n@@@@@@@@\r\none\r\n"
                                         "two\r\n\r\n  three  \r\nfour\r\n");
  EXPECT_THAT(error.message, ::testing::EndsWith("cannot reach 10.0.0.7:22: two; three; four"));
}

TEST(SshWords, AreMadeSafeForTheTerminal) {
  const Error error = classify_ssh_error(target(), {}, "\x1b]0;owned\x07 bad\r\n");
  EXPECT_THAT(error.message, ::testing::Not(::testing::HasSubstr("\x1b")));
}

TEST(SshWords, BlameTheJumpHostForItsOwnKey) {
  Target behind = target();
  behind.jump = "gate";
  behind.proxied = true;
  const Error error =
      classify_ssh_error(behind, {}, "No ED25519 host key is known for gate.\r\nHost key verification failed.\r\n");
  EXPECT_EQ(error.code, Code::host_key_mismatch);
  EXPECT_THAT(error.message, ::testing::HasSubstr("jump host"));
  EXPECT_EQ(error.hint, "ssh gate");
}

TEST(SshWords, OfEachKindHaveAMessageOfTheirOwn) {
  struct Case {
    const char* words;
    Code code;
    const char* told;
  };
  for (const Case& c :
       {Case{"Exceeded MaxStartups\n", Code::busy, "10.0.0.7:22 is busy with other logins"},
        Case{"Not allowed at this time\n", Code::busy, "10.0.0.7:22 is busy with other logins"},
        Case{"Authenticated using \"publickey\" with partial success.\nPermission denied (password).\n",
             Code::auth_refused, "ann@10.0.0.7:22 accepted our key but also asks for input"},
        Case{"device not found\nPermission denied (publickey).\n", Code::auth_refused, "asks for a security key"},
        Case{"Confirm user presence for key ED25519-SK SHA256:x\nPermission denied (publickey).\n", Code::auth_refused,
             "asks for a security key"},
        Case{"Permission denied (publickey).\n", Code::auth_refused, "accepts none of our keys: Permission denied"},
        Case{"ssh: Could not resolve hostname box: Name or service not known\n", Code::host_unreachable,
             "cannot find the address of 10.0.0.7:22: ssh: Could not"},
        Case{"port 22: Connection refused\n", Code::host_unreachable, "nothing listens on this port"},
        Case{"Connection timed out during banner exchange\n", Code::timed_out, "sends nothing"},
        Case{"ssh: connect to host box port 22: Connection timed out\n", Code::timed_out, "no answer in time"},
        Case{"banner line contains invalid characters\n", Code::host_unreachable, "is not an SSH server"},
        Case{"kex_exchange_identification: banner line 0: HTTP/1.1 400\n", Code::host_unreachable,
             "is not an SSH server"},
        Case{"kex_exchange_identification: client sent invalid protocol identifier\n", Code::host_unreachable,
             "is not an SSH server"},
        Case{"Bad remote protocol version identification\n", Code::host_unreachable, "is not an SSH server"},
        Case{"kex_exchange_identification: Connection closed\n", Code::busy, "closed the connection without"},
        Case{"banner exchange: Connection to 10.0.0.7 port 22: Broken pipe\n", Code::busy,
             "closed the connection without"},
        Case{"Unable to negotiate with 10.0.0.7\n", Code::unsupported, "no algorithm in common"},
        Case{"config: line 1: Bad configuration option: x\n", Code::usage, "cannot read its configuration"},
        Case{"config: terminating, 1 bad configuration options\n", Code::usage, "cannot read its configuration"},
        Case{"Can't open user config file /x: No such file\n", Code::usage, "cannot read its configuration"},
        Case{"Host key verification failed.\n", Code::host_key_mismatch, "is not known"},
        Case{"WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\n", Code::host_key_mismatch, "is not known"},
        Case{"UNKNOWN port 65535\nsomething\n", Code::host_unreachable, "cannot reach 10.0.0.7:22: UNKNOWN"},
        Case{"something\n", Code::host_unreachable, "cannot reach 10.0.0.7:22: something"},
        Case{"", Code::host_unreachable, "cannot reach 10.0.0.7:22: ssh gave no reason"}}) {
    const Error error = classify_ssh_error(target(), {}, c.words);
    EXPECT_EQ(error.code, c.code) << c.words;
    EXPECT_THAT(error.message, ::testing::HasSubstr(c.told));
  }
}

TEST(SshWords, NameTheKeysThatWereOffered) {
  Target with_keys = target();
  with_keys.identities = {"/keys/one", "/keys/two"};
  const Error error = classify_ssh_error(with_keys, {}, "Permission denied (publickey).\n");
  EXPECT_THAT(error.message, ::testing::HasSubstr("none of our keys (/keys/one, /keys/two): "));
  EXPECT_EQ(error.hint, "ssh-copy-id ann@10.0.0.7");
}

TEST(SshWords, AreQuotedWithoutNoiseAndOnlyTheLastThree) {
  const Error error =
      classify_ssh_error(target(), {},
                         "one\r\n@@@@@@@@\r\nConnecting to box\r\n  two  \r\n\r\nConnection established.\r\n"
                         "three\r\nfour @ five\r\n");
  EXPECT_THAT(error.message, ::testing::EndsWith(": two; three; four @ five"));
  EXPECT_THAT(classify_ssh_error(target(), {}, "one\ntwo\nthree\n").message, ::testing::EndsWith(": one; two; three"));
}

TEST(SshWords, SayWhichWayWasTaken) {
  Target behind = target();
  behind.proxied = true;
  const auto told = [&](const char* words) { return classify_ssh_error(behind, {}, words).message; };
  EXPECT_THAT(told("Connection refused"), ::testing::HasSubstr("10.0.0.7:22 (through a proxy): "));
  behind.jump = "gate";
  EXPECT_THAT(told("Connection refused"), ::testing::HasSubstr("10.0.0.7:22 (through gate): "));
}

TEST(SshWords, BlameTheTargetForItsKeyAlsoBehindAnother) {
  Target behind = target();
  behind.alias = "inner";
  behind.proxied = true;
  const std::string own =
      "No ED25519 host key is known for " + behind.pin_name() + ".\nHost key verification failed.\n";
  EXPECT_THAT(classify_ssh_error(behind, {}, own).message, ::testing::HasSubstr("is not known"));
  const Error other = classify_ssh_error(behind, {}, "Host key verification failed.\n");
  EXPECT_THAT(other.message, ::testing::HasSubstr("the jump host on the way to 10.0.0.7:22"));
  EXPECT_EQ(other.hint, "ssh inner");
}

TEST(SshWords, TellWhereTheWayThroughAJumpHostEnds) {
  Target behind = target();
  behind.alias = "inner";
  behind.proxied = true;
  const std::string end = "Connection closed by UNKNOWN port 65535\n";
  const auto error = [&](const std::string& words) { return classify_ssh_error(behind, {}, words + end); };
  EXPECT_EQ(error("Permission denied (publickey).\n").code, Code::auth_refused);
  EXPECT_EQ(error("Permission denied (publickey).\n").hint, "ssh inner");
  EXPECT_THAT(error("something\n").message, ::testing::StartsWith("cannot log in to the jump host on the way to"));
  EXPECT_EQ(error("something\n").code, Code::host_unreachable);
  behind.jump = "gate";
  EXPECT_EQ(error("something\n").hint, "ssh gate");
  for (const char* words : {"stdio forwarding failed\n", "channel 0: open failed: connect failed\n"}) {
    EXPECT_THAT(error(words).message, ::testing::StartsWith("the jump host gate cannot reach 10.0.0.7:22"));
    EXPECT_EQ(error(words).code, Code::host_unreachable);
  }
}

TEST(SshWords, ShowBothKeysOfAChange) {
  const HostKey pinned{"ssh-ed25519", "AAAA", "SHA256:old"};
  const Error error = classify_ssh_error(target(), {&pinned, 1},
                                         "The fingerprint for the ED25519 key sent by the remote host is\nSHA256:new.\n"
                                         "Host key verification failed.\n");
  EXPECT_THAT(error.message, ::testing::HasSubstr("pinned is ssh-ed25519 SHA256:old, the host shows SHA256:new;"));
}

}  // namespace
}  // namespace gridctl::ssh::system_ssh_test
