// SPDX-License-Identifier: Apache-2.0
#include "ssh/agent_client.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "ssh/encoding.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::ssh::agent_client_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using gridctl::testing::TempDir;

// An ssh-agent that takes one connection, reads a whole request for each answer, and then closes.
class ScriptedAgent {
 public:
  explicit ScriptedAgent(std::vector<std::string> answers, std::size_t piece_bytes = 1u << 20) {
    listener_ = os::Fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path().c_str());
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    thread_ = std::thread([this, answers = std::move(answers), piece_bytes] { serve(answers, piece_bytes); });
  }
  ~ScriptedAgent() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }
  [[nodiscard]] os::Path path() const { return dir_ / "agent"; }
  // What it was asked, once it has given all its answers.
  const std::vector<std::string>& requests() {
    thread_.join();
    return requests_;
  }

 private:
  void serve(const std::vector<std::string>& answers, std::size_t piece_bytes) {
    const os::Fd fd{::accept(listener_.get(), nullptr, nullptr)};
    if (!fd.valid()) return;
    for (const std::string& answer : answers) {
      std::string request;
      std::array<char, 64 * 1024> buffer;
      for (ssize_t got = 1; got > 0 && !FieldReader{request}.text();) {
        got = ::read(fd.get(), buffer.data(), buffer.size());
        if (got > 0) request.append(buffer.data(), static_cast<std::size_t>(got));
      }
      requests_.push_back(request);
      for (std::size_t at = 0; at < answer.size(); at += piece_bytes)
        if (::send(fd.get(), answer.data() + at, std::min(piece_bytes, answer.size() - at), MSG_NOSIGNAL) < 0) return;
    }
  }

  TempDir dir_;
  os::Fd listener_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

std::string blob_of(const std::string& type) {
  std::string blob;
  append_text(blob, type);
  append_text(blob, "public part");
  return blob;
}

std::string framed(const std::string& body) {
  std::string text;
  append_text(text, body);
  return text;
}

// The answer that lists keys: number 12, how many, and for each its blob and comment.
std::string listing(std::uint32_t count, const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string body{"\x0c"};
  append_number(body, count);
  for (const auto& [blob, comment] : keys) {
    append_text(body, blob);
    append_text(body, comment);
  }
  return body;
}

AgentClient open(const ScriptedAgent& agent) {
  os::Clock& clock = os::system_clock();
  return AgentClient::open(agent.path(), clock.boot() + std::chrono::seconds{20}, clock).value();
}

Result<std::vector<AgentKey>> identities_from(const std::string& answer) {
  const ScriptedAgent agent({answer});
  return open(agent).identities();
}

TEST(AgentClient, ListsTheKeysOfAnAgentThatAnswersByteByByte) {
  ScriptedAgent agent({framed(listing(2, {{blob_of("ssh-ed25519"), "mine"}, {blob_of("ssh-rsa"), ""}}))}, 1);
  const auto keys = open(agent).identities();
  ASSERT_THAT(keys, IsOk());
  ASSERT_EQ(keys->size(), 2u);
  EXPECT_EQ(keys->at(0).type, "ssh-ed25519");
  EXPECT_EQ(keys->at(0).blob, blob_of("ssh-ed25519"));
  EXPECT_EQ(keys->at(0).comment, "mine");
  EXPECT_EQ(keys->at(1).type, "ssh-rsa");
  EXPECT_EQ(agent.requests(), std::vector<std::string>{std::string("\0\0\0\1\x0b", 5)});
}

TEST(AgentClient, LeavesOutAKeyWithoutAType) {
  const auto keys = identities_from(framed(listing(2, {{"odd", "x"}, {blob_of("ssh-ed25519"), "good"}})));
  ASSERT_THAT(keys, IsOk());
  ASSERT_EQ(keys->size(), 1u);
  EXPECT_EQ(keys->at(0).comment, "good");
}

TEST(AgentClient, ListsSixtyFourKeysAtMost) {
  const std::vector<std::pair<std::string, std::string>> many(66, {blob_of("ssh-ed25519"), "x"});
  EXPECT_EQ(identities_from(framed(listing(66, many)))->size(), 64u);
  EXPECT_EQ(identities_from(framed(listing(63, many)))->size(), 63u);
}

TEST(AgentClient, SaysWhatIsWrongWithAnAnswer) {
  const std::string key = blob_of("ssh-ed25519");
  std::string cut{"\x0c"};
  append_number(cut, 1);
  append_text(cut, key);
  std::string too_long;
  append_number(too_long, 256 * 1024 + 1);
  for (const auto& [answer, words] : std::vector<std::pair<std::string, std::string>>{
           {framed("\5"), "refused to list its keys"},
           {framed(""), "refused to list its keys"},
           {framed("\x0c"), "malformed answer"},
           {framed(cut), "malformed answer"},
           {framed(listing(2, {{key, "one"}})), "malformed answer"},
           {too_long, "too long"},
           {"", "closed the connection"},
           {framed(listing(1, {{key, "one"}})).substr(0, 20), "closed the connection"}}) {
    const auto keys = identities_from(answer);
    ASSERT_THAT(keys, FailsWith(Code::io)) << words;
    EXPECT_THAT(keys.error().message, ::testing::HasSubstr("ssh-agent ")) << words;
    EXPECT_THAT(keys.error().message, ::testing::HasSubstr(words));
  }
}

TEST(AgentClient, TakesAnAnswerOfTheLargestSize) {
  const std::string key = blob_of("ssh-ed25519");
  const std::size_t rest = 1 + 4 + 4 + key.size() + 4;
  const auto keys = identities_from(framed(listing(1, {{key, std::string(256 * 1024 - rest, 'c')}})));
  ASSERT_THAT(keys, IsOk());
  EXPECT_EQ(keys->at(0).comment.size(), 256 * 1024 - rest);
}

TEST(AgentClient, HandsOverTheBareSignatureOfAllTheData) {
  std::string signature, body{"\x0e"};
  append_text(signature, "ssh-ed25519");
  append_text(signature, "signed");
  append_text(body, signature);
  const std::string data(2u << 20, 'd');  // more than a socket takes at once
  const AgentKey key{"ssh-ed25519", blob_of("ssh-ed25519"), "mine"};
  ScriptedAgent agent({framed(listing(0, {})), framed(body)});
  AgentClient client = open(agent);
  EXPECT_TRUE(client.identities()->empty());
  const auto bare = client.sign(key, data);
  ASSERT_THAT(bare, IsOk());
  EXPECT_EQ(*bare, "signed");
  std::string wanted{"\x0d"};
  append_text(wanted, key.blob);
  append_text(wanted, data);
  append_number(wanted, 0);
  EXPECT_EQ(agent.requests().at(1), framed(wanted));
}

TEST(AgentClient, TakesNoOddSignature) {
  std::string half, only_type{"\x0e"};
  append_text(half, "ssh-ed25519");
  append_text(only_type, half);
  std::string empty{"\x0e"};
  append_text(empty, "");
  for (const auto& [body, words] : std::vector<std::pair<std::string, std::string>>{{"\5", "refused to sign"},
                                                                                    {"\x0e", "malformed signature"},
                                                                                    {only_type, "malformed signature"},
                                                                                    {empty, "malformed signature"}}) {
    const ScriptedAgent agent({framed(body)});
    const auto signature = open(agent).sign({"ssh-ed25519", "blob", ""}, "data");
    ASSERT_THAT(signature, FailsWith(Code::io));
    EXPECT_THAT(signature.error().message, ::testing::HasSubstr(words));
  }
}

TEST(AgentClient, WaitsNoLongerThanItsDeadline) {
  const ScriptedAgent agent({});
  os::Clock& clock = os::system_clock();
  // The socket takes the request; nobody has accepted it, let alone answered, at a deadline that is over.
  const os::Path nobody = agent.path();
  auto client = AgentClient::open(nobody, clock.boot(), clock);
  ASSERT_THAT(client, IsOk());
  const auto keys = client->identities();
  EXPECT_FALSE(keys);
  const TempDir dir;
  EXPECT_FALSE(AgentClient::open(dir / "none", clock.boot(), clock));
}

}  // namespace
}  // namespace gridctl::ssh::agent_client_test
