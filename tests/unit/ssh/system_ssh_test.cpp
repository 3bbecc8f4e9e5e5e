// SPDX-License-Identifier: Apache-2.0
#include "ssh/system_ssh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::ssh {
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
    EXPECT_THAT(error.message, testing::Not(testing::HasSubstr("\r")));
  }
}

TEST(SshWords, NameTheKeyThatTheHostHas) {
  const auto told = [](const char* words) { return classify_ssh_error(target(), {}, words).one_line(); };
  EXPECT_THAT(told("The fingerprint for the ED25519 key sent by the remote host is\r\nSHA256:abcDEF+/123.\r\n"
                   "Host key verification failed.\r\n"),
              testing::HasSubstr("SHA256:abcDEF+/123"));
  EXPECT_THAT(told("No ED25519 host key is known for 10.0.0.7 and you have requested strict checking.\r\n"
                   "Host key verification failed.\r\n"),
              testing::HasSubstr("a key of type ED25519"));
  EXPECT_THAT(told("SHA256:\r\nHost key verification failed.\r\n"), testing::HasSubstr("another one"));
}

TEST(SshWords, AreMadeSafeForTheTerminal) {
  const Error error = classify_ssh_error(target(), {}, "\x1b]0;owned\x07 bad\r\n");
  EXPECT_THAT(error.message, testing::Not(testing::HasSubstr("\x1b")));
}

TEST(SshWords, BlameTheJumpHostForItsOwnKey) {
  Target behind = target();
  behind.jump = "gate";
  behind.proxied = true;
  const Error error =
      classify_ssh_error(behind, {}, "No ED25519 host key is known for gate.\r\nHost key verification failed.\r\n");
  EXPECT_EQ(error.code, Code::host_key_mismatch);
  EXPECT_THAT(error.message, testing::HasSubstr("jump host"));
  EXPECT_EQ(error.hint, "ssh gate");
}

}  // namespace
}  // namespace gridctl::ssh
