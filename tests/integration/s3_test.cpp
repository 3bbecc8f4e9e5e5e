// SPDX-License-Identifier: Apache-2.0
// Copies in S3, with the server at GRIDCTL_S3_ENDPOINT; s3_test.py starts one. Credentials are in the environment.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "contract/backend_suite.hpp"
#include "crypto/sha256.hpp"
#include "http/client.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "os/random.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_credentials.hpp"
#include "transfer/s3_sign.hpp"

namespace gridctl::store::testing::s3_test {
namespace {

using namespace gridctl::transfer;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* k_bucket = "gridctl-test";

std::string endpoint() { return os::environment("GRIDCTL_S3_ENDPOINT").value_or("http://127.0.0.1:7480"); }

S3Remote remote_at(const std::string& prefix) { return {k_bucket, prefix, endpoint(), {}, {}}; }

S3Scope scope() { return {"us-east-1", os::system_clock().wall()}; }
S3Message message(const std::string& method, const std::string& path) { return {method, endpoint(), path, {}, {}}; }
S3Credentials credentials() { return find_s3_login(remote_at(""), s3_surroundings())->credentials; }

void make_bucket() {
  static const bool made = [] {
    const S3Signed ready =
        sign(message("PUT", std::string("/") + k_bucket), credentials(), scope(), to_hex(crypto::sha256({})));
    http::Client client;
    http::Request request{.method = "PUT",
                          .url = ready.url,
                          .headers = ready.headers,
                          .body = http::source_of({}),
                          .limits = {},
                          .progress = {}};
    const auto answer = client.perform(request);
    return answer && answer->status == 200;
  }();
  EXPECT_TRUE(made);
}

std::unique_ptr<Backend> open(const S3Remote& remote, const S3Options& options = {}) {
  make_bucket();
  auto opened = open_s3(remote, options);
  EXPECT_THAT(opened, IsOk());
  return std::move(*opened);
}

OpenBackend make_remote() {
  const std::string prefix = "suite/" + os::random_id(12);
  return [prefix] { return open(remote_at(prefix)); };
}

INSTANTIATE_TEST_SUITE_P(S3, BackendSuite, ::testing::Values(RemoteUnderTest{"s3", make_remote}),
                         [](const auto& each) { return each.param.name; });

class SteppedClock : public os::Clock {
 public:
  BootTime boot() const override { return os::system_clock().boot(); }
  WallTime wall() const override { return {os::system_clock().wall().ms - 7'200'000}; }
};

TEST(S3Server, TakesTheTimeFromItWhereOurClockIsWrong) {
  SteppedClock behind;
  std::vector<std::string> told;
  S3Options options;
  options.clock = &behind;
  options.tell = [&](std::string_view line) { told.emplace_back(line); };
  const auto remote = open(remote_at("clock"), options);
  const Result<bool> put = remote->put_new("a", as_bytes("text"));
  ASSERT_THAT(put, IsOk());
  EXPECT_EQ(as_text(*remote->read("a", 0, 10)), "text");
  ASSERT_EQ(told.size(), 1u);
  EXPECT_THAT(told[0], HasSubstr("2h behind"));
  EXPECT_THAT(remote->remove("a"), IsOk());
}

TEST(S3Server, RefusesWrongCredentialsAndUnknownBuckets) {
  const std::string secret = *os::environment("AWS_SECRET_ACCESS_KEY");
  auto remote = open(remote_at("x"));
  ::setenv("AWS_SECRET_ACCESS_KEY", "anothersecret", 1);
  const auto refused = remote->list("");
  ASSERT_THAT(refused, FailsWith(Code::auth_refused));
  EXPECT_THAT(refused.error().one_line(), Not(HasSubstr("anothersecret")));
  EXPECT_THAT(remote->put_new("a", as_bytes("x")), FailsWith(Code::auth_refused));
  ::setenv("AWS_ACCESS_KEY_ID", "nobody", 1);
  EXPECT_THAT(remote->list(""), FailsWith(Code::auth_refused));
  ::setenv("AWS_ACCESS_KEY_ID", "gridkey", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", secret.c_str(), 1);
  EXPECT_THAT(remote->list(""), IsOk());  // the same object, with credentials that came later
  S3Remote nowhere = remote_at("x");
  nowhere.bucket = "no-such-bucket";
  EXPECT_THAT(open(nowhere)->list(""), FailsWith(Code::io));
  EXPECT_THAT(open(nowhere)->read("a", 0, 1), FailsWith(Code::io));
  EXPECT_THAT(open(nowhere)->put_new("a", as_bytes("x")), FailsWith(Code::io));
}

TEST(S3Server, TakesPrefixesWithOddCharacters) {
  const auto remote = open(remote_at("team=a/we ird+&$@~,;:'!()*%41"));
  ASSERT_THAT(remote->put_new("packs/a", as_bytes("text")), IsOk());
  EXPECT_EQ(as_text(*remote->read("packs/a", 0, 10)), "text");
  const auto objects = remote->list("");
  ASSERT_THAT(objects, IsOk());
  EXPECT_THAT(*objects, ElementsAre(Object{"packs/a", 4}));
  EXPECT_THAT(remote->remove("packs/a"), IsOk());
}

TEST(S3Server, TakesWithASignedRequestTheBytesItWasSignedForAndNothingElse) {
  make_bucket();
  const auto remote = open(remote_at("signed"));
  http::Client client;
  const auto send = [&](const std::string& method, const std::string& url, const auto& headers, std::string_view body) {
    http::Request request;
    request.method = method;
    request.url = url;
    for (const auto& [name, value] : headers) request.headers.push_back({name, value});
    if (method == "PUT") request.body = http::source_of(as_bytes(body));
    const auto answer = client.perform(request);
    EXPECT_THAT(answer, IsOk());
    return answer ? answer->status : 0;
  };
  const std::string right = "the right body", wrong = "the wrong body";
  const store::SignedPut put = **remote->sign_put("packs/a", crypto::sha256(as_bytes(right)));
  EXPECT_THAT(send("PUT", put.url, put.headers, wrong), Ge(400));
  EXPECT_THAT(*remote->list(""), IsEmpty());
  EXPECT_EQ(send("PUT", put.url, put.headers, right), 200);
  EXPECT_EQ(send("PUT", put.url, put.headers, right), 200);
  EXPECT_THAT(send("PUT", put.url, put.headers, wrong), Ge(400));
  std::string elsewhere = put.url;
  elsewhere.replace(elsewhere.rfind("a"), 1, "b");
  EXPECT_EQ(send("PUT", elsewhere, put.headers, right), 403);
  EXPECT_EQ(send("DELETE", put.url, put.headers, ""), 403);
  EXPECT_THAT(*remote->list(""), ElementsAre(Object{"packs/a", right.size()}));
  EXPECT_EQ(as_text(*remote->read("packs/a", 0, 100)), right);
  const S3Scope long_ago{"us-east-1", {os::system_clock().wall().ms - 16 * 60'000}};
  const std::string path = std::string("/") + k_bucket + "/late";
  const S3Signed late = sign(message("PUT", path), credentials(), long_ago, to_hex(crypto::sha256(as_bytes(right))));
  std::vector<std::pair<std::string, std::string>> headers;
  for (const http::Header& header : late.headers) headers.emplace_back(header.name, header.value);
  EXPECT_EQ(send("PUT", late.url, headers, right), 403);
}

// Each is announced before it is put, so that whoever listens can kill the server in its midst.
TEST(S3Outage, LosesNothingThatWasAcknowledged) {
  S3Options options;
  options.retry_for = std::chrono::minutes{1};
  const auto remote = open(remote_at("outage"), options);
  std::vector<Object> expected;
  const Bytes random = os::random_bytes(20 << 20);
  const ReadAt content = [&](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    return Bytes(random.begin() + static_cast<std::ptrdiff_t>(offset),
                 random.begin() + static_cast<std::ptrdiff_t>(offset + size));
  };
  for (int number = 0; number < 20; ++number) {
    const std::uint64_t size = (number % 3 == 0 ? random.size() : 100'000) - static_cast<std::uint64_t>(number);
    const std::string name = "packs/" + std::to_string(100 + number);
    std::printf("PUT %d\n", number);
    std::fflush(stdout);
    ASSERT_THAT(remote->put(name, size, content), IsOk()) << number;
    expected.push_back({name, size});
  }
  const auto objects = remote->list("packs/");
  ASSERT_THAT(objects, IsOk());
  EXPECT_EQ(*objects, expected);
  for (const Object& object : expected)
    for (std::uint64_t offset = 0; offset < object.size; offset += k_object_read_max) {
      const auto part = remote->read(object.name, offset, k_object_read_max);
      ASSERT_THAT(part, IsOk()) << object.name;
      EXPECT_TRUE(std::equal(part->begin(), part->end(), random.begin() + static_cast<std::ptrdiff_t>(offset)));
      EXPECT_EQ(part->size(), std::min<std::uint64_t>(k_object_read_max, object.size - offset));
    }
}

}  // namespace
}  // namespace gridctl::store::testing::s3_test
