// SPDX-License-Identifier: Apache-2.0
#include "http/client.hpp"

#include <gtest/gtest.h>

#include "base/text.hpp"
#include "os/process.hpp"
#include "os/ready.hpp"
#include "support/http_server.hpp"
#include "support/results.hpp"
#include "support/temp_dir.hpp"

namespace gridctl::http::client_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::HttpCall;
using gridctl::testing::HttpReply;
using gridctl::testing::HttpServer;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Duration k_soon = std::chrono::milliseconds{300};

Request get(const HttpServer& server, const std::string& target = "/") {
  Request request;
  request.url = server.url() + target;
  return request;
}

HttpServer::Handler always(const HttpReply& reply) {
  return [reply](const HttpCall&) { return reply; };
}

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 12345;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

TEST(HttpClient, SendsMethodHeadersAndBodyAndReturnsTheWholeAnswer) {
  HttpServer server([](const HttpCall& call) {
    return HttpReply{.status = 201, .headers = {{"X-Odd", " a b "}, {"X-ODD", "second"}}, .body = "got " + call.body};
  });
  Client client;
  Request request = get(server, "/a%20b?x=%2F");
  request.method = "PUT";
  request.headers = {{"X-Mine", "1"}, {"X-Empty", ""}};
  request.body = source_of(as_bytes("content"));
  const auto answer = client.perform(request);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->header("x-odd"), "a b");
  EXPECT_EQ(answer->header("absent"), "");
  EXPECT_EQ(as_text(answer->body), "got content");
  const HttpCall call = server.calls().at(0);
  EXPECT_EQ(call.method, "PUT");
  EXPECT_EQ(call.target, "/a%20b?x=%2F");
  EXPECT_EQ(call.headers.at("x-mine"), "1");
  EXPECT_TRUE(call.headers.contains("x-empty"));
  EXPECT_EQ(call.headers.at("content-length"), "7");
}

TEST(HttpClient, SendsBodiesOfManyMegabytesInOrderAndTellsHowFarItIs) {
  const std::string content = pattern(9 << 20);
  HttpServer server([](const HttpCall& call) { return HttpReply{.body = std::to_string(call.body.size())}; });
  Client client;
  Request request = get(server);
  request.method = "PUT";
  request.body = source_of(as_bytes(content));
  std::uint64_t told = 0;
  request.progress = [&](std::uint64_t sent, std::uint64_t) {
    EXPECT_GE(sent, told);
    told = sent;
    return true;
  };
  ASSERT_THAT(client.perform(request), IsOk());
  EXPECT_TRUE(server.calls().at(0).body == content);
  EXPECT_GT(told, 0u);
}

TEST(HttpClient, KeepsItsConnection) {
  HttpServer server(always({.body = "x"}));
  Client client;
  for (int i = 0; i < 5; ++i) ASSERT_THAT(client.perform(get(server)), IsOk());
  EXPECT_EQ(server.connections(), 1u);
}

TEST(HttpClient, SendsABodyAnewWhenAKeptConnectionWasClosedMeanwhile) {
  const std::string content = pattern(64 << 10);
  int calls = 0;
  HttpServer server([&](const HttpCall&) { return ++calls == 2 ? HttpReply{.cut_at = 0} : HttpReply{.body = "x"}; });
  Client client;
  Request request = get(server);
  request.method = "PUT";
  request.headers = {{"Expect", ""}};  // a server that says "100 Continue" was there, and is not asked again
  request.body = source_of(as_bytes(content));
  for (int i = 0; i < 2; ++i) ASSERT_THAT(client.perform(request), IsOk());
  ASSERT_EQ(server.calls().size(), 3u);
  EXPECT_TRUE(server.calls()[2].body == content);
  EXPECT_EQ(server.connections(), 2u);
}

TEST(HttpClient, AsksForHeadersAloneAndPostsNothing) {
  HttpServer server(always({.headers = {{"X-A", "1"}}, .body = "twelve bytes"}));
  Client client;
  Request request = get(server);
  request.method = "HEAD";
  const auto answer = client.perform(request);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->header("content-length"), "12");
  EXPECT_TRUE(answer->body.empty());
  request.method = "POST";
  request.body = source_of({});
  ASSERT_THAT(client.perform(request), IsOk());
  EXPECT_EQ(server.calls().at(1).headers.at("content-length"), "0");
}

TEST(HttpClient, GivesAnswersOfAnyStatusAndFollowsNoRedirect) {
  HttpServer server(always({.status = 307, .headers = {{"Location", "/elsewhere"}}}));
  Client client;
  const auto answer = client.perform(get(server));
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->status, 307);
  EXPECT_EQ(server.calls().size(), 1u);
}

TEST(HttpClient, TellsWhenToTryAgain) {
  HttpServer server(always({.status = 503, .headers = {{"Retry-After", "7"}}}));
  Client client;
  EXPECT_EQ(client.perform(get(server))->retry_after, std::optional<Duration>(std::chrono::seconds{7}));
}

TEST(HttpClient, RefusesBodiesBeyondTheLimit) {
  HttpServer server(always({.body = std::string(1001, 'x')}));
  Client client;
  Request request = get(server);
  request.limits.body_max = 1000;
  EXPECT_THAT(client.perform(request), FailsWith(Code::protocol_violation));
  request.limits.body_max = 1001;
  EXPECT_THAT(client.perform(request), IsOk());
}

TEST(HttpClient, RefusesHeadersBeyondTheLimits) {
  for (const auto& [count, length] : {std::pair{1, k_headers_max}, std::pair{300, std::size_t{10}}}) {
    HttpReply reply;
    for (int i = 0; i < count; ++i) reply.headers.emplace_back("X-Long", std::string(length, 'x'));
    HttpServer server(always(reply));
    Client client;
    EXPECT_THAT(client.perform(get(server)), FailsWith(Code::protocol_violation));
  }
}

TEST(HttpClient, TakesACutOffAnswerForABrokenLink) {
  for (const std::size_t cut_at : {std::size_t{0}, std::size_t{5}, std::size_t{20}, std::size_t{500}}) {
    HttpServer server(always({.body = std::string(1000, 'x'), .cut_at = cut_at}));
    Client client;
    EXPECT_THAT(client.perform(get(server)), FailsWith(Code::host_unreachable)) << cut_at;
  }
}

TEST(HttpClient, TakesWhatIsNoHttpForAViolation) {
  for (const char* raw : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1 abc\r\n\r\n", "\x16\x03\x01"}) {
    HttpServer server(always({.raw = raw}));
    Client client;
    const auto answer = client.perform(get(server));
    ASSERT_FALSE(answer) << raw;
    EXPECT_TRUE(answer.error().code == Code::protocol_violation || answer.error().code == Code::host_unreachable)
        << raw;
  }
}

TEST(HttpClient, GivesUpOnAServerThatSaysNothing) {
  HttpServer server(always({.hang = true}));
  Client client;
  Request request = get(server);
  request.limits.stalled_max = k_soon;
  EXPECT_THAT(client.perform(request), FailsWith(Code::timed_out));
}

TEST(HttpClient, HasPatienceWithASlowServerUntilTheTotalIsOver) {
  HttpServer server(always({.body = std::string(25, 'x'), .drip = std::chrono::milliseconds{60}}));
  Client client;
  Request request = get(server);
  request.limits.stalled_max = std::chrono::seconds{1};
  EXPECT_THAT(client.perform(request), IsOk());  // more than a second in all, but never so long without a byte
  request.limits.total_max = k_soon;
  EXPECT_THAT(client.perform(request), FailsWith(Code::timed_out));
}

TEST(HttpClient, StopsWhenItIsToldTo) {
  HttpServer server(always({.hang = true}));
  Client client;
  Request request = get(server);
  int asked = 0;
  request.progress = [&](std::uint64_t, std::uint64_t) { return ++asked < 3; };
  EXPECT_THAT(client.perform(request), FailsWith(Code::cancelled));
}

TEST(HttpClient, GoesOnWorkingAfterFailures) {
  int call_number = 0;
  HttpServer server([&](const HttpCall&) {
    return ++call_number == 1 ? HttpReply{.hang = true} : HttpReply{.body = std::to_string(call_number)};
  });
  Client client;
  Request request = get(server);
  request.limits.stalled_max = k_soon;
  EXPECT_THAT(client.perform(request), FailsWith(Code::timed_out));
  const auto answer = client.perform(request);
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(as_text(answer->body), "2");
}

TEST(HttpClient, NamesTheServerButNoSecretOfTheUrlWhenItCannotBeReached) {
  std::string url;
  {
    HttpServer server(always({}));
    url = server.url();
  }
  Client client;
  Request request;
  request.url = url + "/path?X-Amz-Signature=secret";
  request.headers = {{"Authorization", "secret"}};
  const auto answer = client.perform(request);
  ASSERT_THAT(answer, FailsWith(Code::host_unreachable));
  EXPECT_THAT(answer.error().message, HasSubstr(url));
  EXPECT_THAT(answer.error().one_line(), Not(HasSubstr("secret")));
  request.url = "http://no-such-host.invalid/";
  EXPECT_THAT(client.perform(request), FailsWith(Code::host_unreachable));
}

TEST(HttpClient, PassesOnWhyABodyCouldNotBeRead) {
  HttpServer server(always({}));
  Client client;
  Request request = get(server);
  request.method = "PUT";
  request.body = BodySource{100, [](std::uint64_t, std::span<std::byte>) -> Result<void> {
                          return make_error(Code::checkpoint_damaged, "the pack is gone");
                        }};
  const auto answer = client.perform(request);
  ASSERT_THAT(answer, FailsWith(Code::checkpoint_damaged));
  EXPECT_THAT(answer.error().message, HasSubstr("the pack is gone"));
}

TEST(HttpClient, RefusesWhatIsNoRequest) {
  Client client;
  for (const char* url : {"", "ftp://host/", "http://", "http://:80/", "http://user:word@host/", "http://host/a b",
                          "http://host/\r\nX: 1", "file:///etc/passwd"}) {
    Request request;
    request.url = url;
    EXPECT_THAT(client.perform(request), FailsWith(Code::usage)) << url;
  }
  Request request;
  request.url = "http://127.0.0.1:1/";
  request.headers = {{"X-A", "b\r\nX-C: d"}};
  EXPECT_THAT(client.perform(request), FailsWith(Code::usage));
}

// A real TLS server with a certificate of its own making.
TEST(HttpClient, TrustsNoCertificateThatNobodyVouchesFor) {
  const auto openssl = os::find_program("openssl");
  if (!openssl) GTEST_SKIP() << "the program openssl is not installed";
  const gridctl::testing::TempDir folder;
  const std::string key = folder / "key.pem", certificate = folder / "cert.pem";
  const auto made = os::run({*openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                             "-keyout", key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                             "subjectAltName=DNS:localhost"});
  ASSERT_TRUE(made && made->status.success()) << made->err;
  auto out = os::make_pipe();
  ASSERT_THAT(out, IsOk());
  os::SpawnOptions options;
  options.stdout_fd = out->second.get();
  options.die_with_parent = true;
  const auto pid =
      os::spawn({*openssl, "s_server", "-accept", "127.0.0.1:0", "-key", key, "-cert", certificate, "-www"}, options);
  ASSERT_THAT(pid, IsOk());
  const auto process = os::identify(*pid);
  std::string said;
  while (said.find("ACCEPT") == std::string::npos || said.back() != '\n') {
    ASSERT_TRUE(os::wait_ready(out->first.get(), true, false, std::chrono::seconds{20}).value_or(false)) << said;
    std::byte byte;
    auto got = os::read_now(out->first.get(), {&byte, 1});
    ASSERT_TRUE(got && got->bytes == 1) << said;
    said += static_cast<char>(byte);
  }
  const std::string port = said.substr(said.rfind(':') + 1);
  Request request;
  request.url = "https://localhost:" + std::string(trim(port)) + "/";
  EXPECT_THAT(Client().perform(request), FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(Client({.ca_bundle = certificate}).perform(request), IsOk());
  request.url = "https://127.0.0.1:" + std::string(trim(port)) + "/";  // not the name in the certificate
  EXPECT_THAT(Client({.ca_bundle = certificate}).perform(request), FailsWith(Code::host_key_mismatch));
  EXPECT_THAT(Client({.ca_bundle = folder / "absent"}).perform(request), FailsWith(Code::host_key_mismatch));
  ASSERT_THAT(os::send_signal(*process, 15), IsOk());
  ASSERT_THAT(os::wait(*pid), IsOk());
}

TEST(HttpUrl, IsTakenApart) {
  const auto origin = parse_origin("HTTPS://S3.Example.com:9000/a?b");
  ASSERT_THAT(origin, IsOk());
  EXPECT_EQ(origin->scheme, "https");
  EXPECT_EQ(origin->authority, "s3.example.com:9000");
  EXPECT_EQ(origin->path_at, 27u);
  EXPECT_EQ(parse_origin("http://host")->path_at, 11u);
}

TEST(HttpDate, IsReadInItsForms) {
  EXPECT_EQ(parse_date("Fri, 24 May 2013 00:00:00 GMT"), WallTime{1369353600000});
  EXPECT_EQ(parse_date("Friday, 24-May-13 00:00:01 GMT"), WallTime{1369353601000});
  EXPECT_EQ(parse_date("yesterday"), std::nullopt);
  EXPECT_EQ(parse_date(""), std::nullopt);
}

}  // namespace
}  // namespace gridctl::http::client_test
