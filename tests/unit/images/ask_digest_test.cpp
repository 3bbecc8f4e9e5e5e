// SPDX-License-Identifier: Apache-2.0
// Asks a registry of the test's own on loopback, and conversations that no real one would begin.
#include "images/ask_digest.hpp"

#include <gmock/gmock.h>

#include <deque>

#include "crypto/sha256.hpp"
#include "support/http_server.hpp"

namespace gridctl::images::ask_digest_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using gridctl::testing::HttpCall;
using gridctl::testing::HttpReply;
using gridctl::testing::HttpServer;

const std::string k_manifest = R"({"schemaVersion":2,"config":{"digest":"sha256:1"}})";
const std::string k_index = R"({"schemaVersion":2,"manifests":[{"digest":"sha256:1"}]})";
std::string hash(std::string_view body) { return "sha256:" + to_hex(crypto::sha256(as_bytes(body))); }

HttpReply manifest_reply() {
  return {200, {{"Content-Type", "application/vnd.oci.image.manifest.v1+json"}, {"Docker-Content-Digest", hash(k_manifest)}}, k_manifest};
}

job::ImageReference image_at(const HttpServer& server, const std::string& rest = "team/img:1") {
  return *job::parse_image_reference(server.url().substr(std::string("http://").size()) + "/" + rest);
}
Result<std::string> asked(const HttpServer& server, Duration within = 5s) { return ask_digest(image_at(server), within, os::system_clock()); }

TEST(AskDigest, OfATagIsTheHashOfItsManifest) {
  const HttpServer server([](const HttpCall& call) {
    EXPECT_EQ(call.method + " " + call.target, "GET /v2/team/img/manifests/1");
    EXPECT_THAT(call.headers.at("accept"), HasSubstr("image.index.v1+json"));
    EXPECT_THAT(call.headers.at("accept"), HasSubstr("docker.distribution.manifest.v2+json"));
    return manifest_reply();
  });
  EXPECT_EQ(*asked(server), hash(k_manifest));
  EXPECT_EQ(server.calls().size(), 1u);
}

TEST(AskDigest, OfAnIndexIsThatOfTheIndex) {
  const HttpServer server([](const HttpCall&) {
    return HttpReply{200, {{"Content-Type", "application/vnd.docker.distribution.manifest.list.v2+json"}}, k_index};
  });
  EXPECT_EQ(*asked(server), hash(k_index));
}

TEST(AskDigest, FetchesATokenWhereOneIsWanted) {
  std::string url;
  const HttpServer server([&](const HttpCall& call) {
    if (call.target.starts_with("/token")) {
      EXPECT_EQ(call.target, "/token?service=here&scope=repository%3Ateam%2Fimg%3Apull");
      EXPECT_THAT(call.headers, Not(Contains(Pair("authorization", ::testing::_))));
      return HttpReply{200, {}, R"({"token":"secret"})"};
    }
    const auto given = call.headers.find("authorization");
    if (given == call.headers.end())
      return HttpReply{401, {{"WWW-Authenticate", "Basic realm=\"x\""}, {"WWW-Authenticate", "Bearer realm=\"" + url + "/token\",service=\"here\""}}, "{}"};
    EXPECT_EQ(given->second, "Bearer secret");
    return manifest_reply();
  });
  url = server.url();
  EXPECT_EQ(*asked(server), hash(k_manifest));
  EXPECT_EQ(server.calls().size(), 3u);
}

TEST(AskDigest, SaysWhyThereIsNone) {
  HttpReply reply;
  const HttpServer server([&](const HttpCall&) { return reply; });
  const auto why = [&](HttpReply next) {
    reply = std::move(next);
    const auto got = asked(server);
    return got ? *got : std::string(code_name(got.error().code)) + ": " + got.error().message;
  };
  EXPECT_THAT(why({404, {}, "{}"}), HasSubstr("not_found: registry 127.0.0.1:"));
  EXPECT_THAT(why({404, {}, "{}"}), HasSubstr("it has no image team/img:1"));
  EXPECT_THAT(why({401, {{"WWW-Authenticate", "Basic realm=\"x\""}}, ""}), HasSubstr("auth_refused: "));
  EXPECT_THAT(why({403, {}, ""}), HasSubstr("only after a login"));
  EXPECT_THAT(why({429, {}, ""}), HasSubstr("no more requests"));
  EXPECT_THAT(why({500, {}, ""}), HasSubstr("it answers 500"));
  EXPECT_THAT(why({200, {{"Content-Type", "text/html"}}, "<html>"}), HasSubstr("no manifest"));
  HttpReply liar = manifest_reply();
  liar.headers[1].second = hash("another");
  EXPECT_THAT(why(liar), HasSubstr("but the manifest that it sent has"));
  HttpReply huge = manifest_reply();
  huge.body.assign(5u << 20, ' ');
  EXPECT_THAT(why(huge), HasSubstr("protocol_violation"));
}

TEST(AskDigest, EndsAtItsDeadline) {
  HttpReply silent;
  silent.hang = true;
  HttpReply slow = manifest_reply();
  slow.drip = 100ms;
  for (const HttpReply& reply : {silent, slow}) {
    const HttpServer server([&](const HttpCall&) { return reply; });
    const BootTime began = os::system_clock().boot();
    const auto got = asked(server, 500ms);
    ASSERT_FALSE(got.has_value());
    EXPECT_EQ(got.error().code, Code::timed_out) << got.error().one_line();
    EXPECT_LT(os::system_clock().boot() - began, 4s);
  }
}

TEST(AskDigest, EndsWhateverAHostileRegistrySends) {
  const std::string head = "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.oci.image.manifest.v1+json\r\n";
  std::string many = head;
  for (int number = 0; number < 100'000; ++number) many += "X-" + std::to_string(number) + ": y\r\n";
  std::string interim;
  for (int number = 0; number < 200'000; ++number) interim += "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
  std::string pieces = head + "Transfer-Encoding: chunked\r\n\r\n";
  for (int number = 0; number < 100; ++number) pieces += "10000\r\n" + std::string(0x10000, ' ') + "\r\n";
  const std::string padded = head + "X: " + std::string(10 << 20, 'x') + "\r\n\r\n";
  HttpReply slow{.raw = many};
  slow.drip = 20ms;
  for (const auto& [what, reply] : {std::pair<const char*, HttpReply>{"a header of 10 MiB", {.raw = padded}}, {"100,000 headers", {.raw = many}},
                                    {"answers before the answer", {.raw = interim}}, {"a body that is not told to end", {.raw = head + "\r\n" + std::string(6 << 20, ' ')}},
                                    {"pieces without an end", {.raw = pieces}}, {"a length that is none", {.raw = head + "Content-Length: -5\r\n\r\n"}},
                                    {"headers that drip", slow}, {"no HTTP", {.raw = "SSH-2.0-OpenSSH_9.2\r\n"}}, {"a word of a login page", {.raw = head + "Content-Length: 6\r\n\r\n<html>"}}}) {
    const HttpServer server([&r = reply](const HttpCall&) { return r; });
    const BootTime began = os::system_clock().boot();
    const auto got = asked(server, 1500ms);
    ASSERT_FALSE(got.has_value()) << what;
    EXPECT_LT(os::system_clock().boot() - began, 5s) << what;
    EXPECT_THAT(got.error().message, ::testing::StartsWith("registry 127.0.0.1:")) << what;
    EXPECT_LT(got.error().one_line().size(), 500u) << what;
    EXPECT_EQ(got.error().one_line().find('\n'), std::string::npos) << what;
  }
}

TEST(AskDigest, FromNobodyIsAnErrorThatNamesTheRegistry) {
  std::optional<HttpServer> server(std::in_place, [](const HttpCall&) { return HttpReply{}; });
  const job::ImageReference image = image_at(*server);
  server.reset();
  const auto got = ask_digest(image, 2s, os::system_clock());
  ASSERT_FALSE(got.has_value());
  EXPECT_EQ(got.error().code, Code::host_unreachable);
  EXPECT_THAT(got.error().message, HasSubstr("registry 127.0.0.1:"));
  EXPECT_EQ(ask_digest(*job::parse_image_reference("localhost/a:1"), 1s, os::system_clock()).error().code, Code::usage);
}

// Plays a registry that is asked over TLS: what is requested, and with what.
struct Script {
  std::deque<http::Answer> answers;
  std::vector<std::string> asked;
  Result<std::string> digest(const std::string& image) {
    return ask_digest(*job::parse_image_reference(image), os::system_clock().boot() + 10s, os::system_clock(), [this](const http::Request& request) -> Result<http::Answer> {
      std::string line = request.url;
      for (const http::Header& header : request.headers)
        if (header.name == "Authorization") line += " " + header.value;
      asked.push_back(line);
      if (answers.empty()) return make_error(Code::host_unreachable, "no more");
      http::Answer next = answers.front();
      answers.pop_front();
      return next;
    });
  }
};
http::Answer plain(int status, std::vector<http::Header> headers = {}, const std::string& body = "") {
  http::Answer answer;
  answer.status = status;
  answer.headers = std::move(headers);
  answer.body.assign(as_bytes(body).begin(), as_bytes(body).end());
  return answer;
}
http::Answer good() { return plain(200, {{"content-type", "application/vnd.oci.image.manifest.v1+json"}}, k_manifest); }

TEST(AskDigest, GoesToWhereTheRegistryIs) {
  Script hub{{good()}, {}};
  EXPECT_EQ(*hub.digest("debian:12"), hash(k_manifest));
  EXPECT_EQ(hub.asked[0], "https://registry-1.docker.io/v2/library/debian/manifests/12");
  Script other{{good()}, {}};
  EXPECT_EQ(*other.digest("reg.example:5000/a/b"), hash(k_manifest));
  EXPECT_EQ(other.asked[0], "https://reg.example:5000/v2/a/b/manifests/latest");
  Script none;
  EXPECT_EQ(*none.digest("debian@" + hash("x")), hash("x"));
  EXPECT_THAT(none.asked, IsEmpty());
}

TEST(AskDigest, IsAskedWithoutTlsOfThisMachineAlone) {
  // A name that only looks like an address of this machine's leads anywhere.
  for (const char* image : {"127.evil.example/a:1", "127.0.0.1.evil.example/a:1", "localhost.evil.example/a:1", "127.1/a:1", "reg.example/a:1"}) {
    Script script{{good()}, {}};
    (void)script.digest(image);
    for (const std::string& url : script.asked) EXPECT_THAT(url, ::testing::StartsWith("https://")) << image;
  }
  Script near{{plain(307, {{"location", "http://127.evil.example/x"}}), good()}, {}};
  EXPECT_FALSE(near.digest("127.0.0.1:5000/a:1").has_value()) << "nor does a redirect from here";
  EXPECT_EQ(near.asked.size(), 1u);
}

TEST(AskDigest, FollowsARedirectWithoutItsToken) {
  Script script{{plain(401, {{"www-authenticate", "Bearer realm=\"https://auth.example/t\""}}), plain(200, {}, R"({"token":"T"})"),
                 plain(307, {{"location", "https://other.example/m"}}), good()}, {}};
  EXPECT_EQ(*script.digest("reg.example/a:1"), hash(k_manifest));
  EXPECT_EQ(script.asked[2], "https://reg.example/v2/a/manifests/1 Bearer T");
  EXPECT_EQ(script.asked[3], "https://other.example/m");
  Script near{{plain(302, {{"location", "/elsewhere"}}), good()}, {}};
  EXPECT_TRUE(near.digest("reg.example/a:1").has_value());
  EXPECT_EQ(near.asked[1], "https://reg.example/elsewhere");
}

TEST(AskDigest, IsLedNeitherToThisMachineNorOutOfTlsNorInCircles) {
  for (const char* to : {"http://reg.example/x", "https://localhost/x", "https://127.0.0.1:8443/x", "file:///etc/passwd", "//other.example/x", "",
                         "https://169.254.169.254/latest", "https://[::1]/x", "https://[::ffff:127.0.0.1]:8443/x", "https://[fe80::1]/x", "https://0.0.0.0/x",
                         "https://localhost./x", "https://LOCALHOST/x", "https://x.localhost/x", "https://2130706433/x", "https://0x7f000001/x", "https://127.1/x",
                         "https://0177.0.0.1/x", "ftp://other.example/x", "https://me:secret@other.example/x"}) {
    Script script{{plain(307, {{"location", to}}), good()}, {}};
    EXPECT_FALSE(script.digest("reg.example/a:1").has_value()) << to;
    EXPECT_EQ(script.asked.size(), 1u) << to;
    Script token{{plain(401, {{"www-authenticate", std::string("Bearer realm=\"") + to + "\""}}), plain(200, {}, R"({"token":"T"})"), good()}, {}};
    EXPECT_FALSE(token.digest("reg.example/a:1").has_value()) << to;
    EXPECT_EQ(token.asked.size(), 1u) << to;
  }
  Script circle;
  for (int i = 0; i < 9; ++i) circle.answers.push_back(plain(307, {{"location", "/again"}}));
  EXPECT_FALSE(circle.digest("reg.example/a:1").has_value());
  EXPECT_EQ(circle.asked.size(), 4u);
  Script refused;
  for (int i = 0; i < 9; ++i) refused.answers.push_back(i == 1 ? plain(200, {}, R"({"token":"T"})") : plain(401, {{"www-authenticate", "Bearer realm=\"https://a.example/t\""}}));
  EXPECT_EQ(refused.digest("reg.example/a:1").error().code, Code::auth_refused);
  EXPECT_EQ(refused.asked.size(), 3u) << "one token is enough";
}

}  // namespace
}  // namespace gridctl::images::ask_digest_test
