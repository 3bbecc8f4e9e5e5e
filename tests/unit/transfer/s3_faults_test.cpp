// SPDX-License-Identifier: Apache-2.0
// What a server of S3 may do to us, by script.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "os/net.hpp"
#include "support/results.hpp"
#include "support/scripted_s3.hpp"
#include "support/temp_dir.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_wire.hpp"

namespace gridctl::transfer::s3_faults_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::HttpCall;
using gridctl::testing::HttpReply;
using gridctl::testing::IsOk;
using gridctl::testing::S3Fault;
using gridctl::testing::ScriptedS3;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Fault = std::optional<S3Fault>;

Fault reply(const HttpReply& given) { return S3Fault{given, false}; }
Fault fails(int status, const std::string& code) { return reply(ScriptedS3::error(status, code)); }
const HttpReply k_cut{.cut_at = 0};

std::string pattern(std::size_t size) {
  std::string text(size, '\0');
  std::uint32_t state = 4711;
  for (char& c : text) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}
store::ReadAt content_of(const std::string& text) {
  return [&text](std::uint64_t offset, std::size_t size) -> Result<Bytes> {
    const ByteView part = as_bytes(std::string_view(text).substr(offset, size));
    return Bytes(part.begin(), part.end());
  };
}

class S3Faults : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("AWS_SHARED_CREDENTIALS_FILE", (folder_ / "credentials").c_str(), 1);
    ::setenv("AWS_CONFIG_FILE", (folder_ / "config").c_str(), 1);
    for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
                             "AWS_DEFAULT_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "http_proxy", "AWS_CA_BUNDLE"})
      ::unsetenv(name);
    credentials("first");
    options_.tell = [this](std::string_view line) { told_.emplace_back(line); };
  }
  void credentials(const std::string& word) {
    ASSERT_THAT(os::write_file_durably(folder_ / "credentials", "[default]\naws_access_key_id = key-" + word +
                                                                    "\naws_secret_access_key = secret-" + word +
                                                                    "\naws_session_token = token-" + word + "\n"),
                IsOk());
  }
  std::unique_ptr<store::Backend> open(const std::string& endpoint) {
    auto remote = open_s3({"bucket", "pre", endpoint, {}, {}}, options_);
    EXPECT_THAT(remote, IsOk());
    return remote ? std::move(*remote) : nullptr;
  }
  Result<void> put(store::Backend& remote, const std::string& name, const std::string& text,
                   const store::Moved& moved = {}) {
    return remote.put(name, text.size(), content_of(text), moved);
  }
  BootTime now() { return os::system_clock().boot(); }

  gridctl::testing::TempDir folder_;
  S3Options options_;
  std::vector<std::string> told_;
};

TEST_F(S3Faults, AStormOf503IsRiddenOut) {
  ScriptedS3 server(
      [](const HttpCall&, std::size_t number) { return number % 3 != 0 ? fails(503, "SlowDown") : Fault{}; });
  const auto remote = open(server.url());
  EXPECT_THAT(put(*remote, "packs/a", "text"), IsOk());
  EXPECT_EQ(server.objects.at("pre/packs/a"), "text");
  EXPECT_EQ(server.calls().size(), 6u);  // HEAD and PUT
}

TEST_F(S3Faults, AServerThatStaysBusyIsGivenUpInTime) {
  ScriptedS3 server([](const HttpCall&, std::size_t) { return fails(503, "SlowDown"); });
  options_.retry_for = std::chrono::seconds{1};
  const BootTime began = now();
  const auto result = put(*open(server.url()), "packs/a", "text");
  ASSERT_THAT(result, FailsWith(Code::host_unreachable));
  EXPECT_THAT(result.error().one_line(), HasSubstr("503"));
  EXPECT_THAT(result.error().one_line(), HasSubstr("while putting s3://bucket/pre/packs/a"));
  EXPECT_LT(now() - began, std::chrono::seconds{15});
  EXPECT_GT(server.calls().size(), 1u);
}

TEST_F(S3Faults, ANameThatLeavesItsPrefixIsNeverSent) {
  ScriptedS3 server([](const HttpCall&, std::size_t) { return Fault{}; });
  const auto remote = open(server.url());
  for (const char* name : {"../a", "packs/../../a", ""}) {
    EXPECT_FALSE(remote->remove(name)) << name;
    EXPECT_FALSE(remote->put_new(name, {})) << name;
    EXPECT_FALSE(remote->sign_put(name, {})) << name;
  }
  EXPECT_TRUE(server.calls().empty());
}

TEST_F(S3Faults, RetryAfterIsHonouredAndBounded) {
  ScriptedS3 server([](const HttpCall&, std::size_t number) {
    HttpReply busy = ScriptedS3::error(503, "SlowDown");
    busy.headers.emplace_back("Retry-After", number == 1 ? "1" : "86400");
    return number == 2 ? Fault{} : reply(busy);
  });
  const auto remote = open(server.url());
  const BootTime began = now();
  EXPECT_THAT(remote->remove("packs/a"), IsOk());
  EXPECT_GE(now() - began, std::chrono::seconds{1});
  const BootTime again = now();
  EXPECT_THAT(remote->remove("packs/a"), FailsWith(Code::host_unreachable));
  EXPECT_LT(now() - again, std::chrono::seconds{10});
}

TEST_F(S3Faults, ADeadServerIsUnreachable) {
  std::string url;
  { url = ScriptedS3().url(); }
  options_.retry_for = std::chrono::milliseconds{500};
  EXPECT_THAT(open(url)->list(""), FailsWith(Code::host_unreachable));
}

TEST_F(S3Faults, ACancellationEndsTheWaiting) {
  ScriptedS3 server([](const HttpCall&, std::size_t) { return fails(503, "SlowDown"); });
  std::atomic<int> asked = 0;
  options_.retry_for = std::chrono::hours{1};
  options_.cancelled = [&] { return ++asked > 5; };
  EXPECT_THAT(open(server.url())->list(""), FailsWith(Code::cancelled));
}

TEST_F(S3Faults, ASilentServerIsTriedAgain) {
  ScriptedS3 server([](const HttpCall&, std::size_t number) { return number == 1 ? reply({.hang = true}) : Fault{}; });
  server.objects["pre/a"] = "text";
  options_.stalled_max = std::chrono::milliseconds{300};
  const auto bytes = open(server.url())->read("a", 0, 100);
  ASSERT_THAT(bytes, IsOk());
  EXPECT_EQ(as_text(*bytes), "text");
}

TEST_F(S3Faults, ABodyThatIsCutOffIsReadAgain) {
  const std::string text = pattern(100'000);
  ScriptedS3 server([&](const HttpCall&, std::size_t number) {
    return number <= 2 ? reply({.status = 206,
                                .headers = {{"Content-Range", "bytes 0-99999/100000"}},
                                .body = text,
                                .cut_at = 5'000})
                       : Fault{};
  });
  server.objects["pre/a"] = text;
  const auto bytes = open(server.url())->read("a", 0, text.size());
  ASSERT_THAT(bytes, IsOk());
  EXPECT_TRUE(as_text(*bytes) == text);
}

TEST_F(S3Faults, OtherBytesThanThoseAskedForAreRefused) {
  const auto part = [](int status, const std::string& range, const std::string& body) {
    return HttpReply{.status = status, .headers = {{"Content-Range", range}}, .body = body};
  };
  for (const HttpReply& wrong : {part(206, "bytes 0-9/100", "0123456789"),     // another remote
                                 part(206, "bytes 10-19/100", "012345678"),    // not so long as told
                                 part(206, "bytes 10-18/100", "012345678"),    // less than there is
                                 part(206, "bytes 10-20/100", "0123456789a"),  // more than asked for
                                 part(206, "", "0123456789"), part(200, "", "0123456789")}) {
    ScriptedS3 server([&](const HttpCall&, std::size_t) { return reply(wrong); });
    EXPECT_THAT(open(server.url())->read("a", 10, 10), FailsWith(Code::protocol_violation)) << wrong.headers[0].second;
  }
  ScriptedS3 ignores([](const HttpCall&, std::size_t) { return reply({.body = std::string(1'000'000, 'x')}); });
  EXPECT_THAT(open(ignores.url())->read("a", 0, 10), FailsWith(Code::protocol_violation));
}

TEST_F(S3Faults, AWebServersNotFoundIsNoMissingObject) {
  ScriptedS3 server(
      [](const HttpCall&, std::size_t) { return reply({.status = 404, .body = "<html>Not Found</html>"}); });
  EXPECT_THAT(open(server.url())->read("a", 0, 10), FailsWith(Code::protocol_violation));
  ScriptedS3 empty([](const HttpCall&, std::size_t) { return fails(404, "NoSuchBucket"); });
  const auto result = open(empty.url())->read("a", 0, 10);
  ASSERT_THAT(result, FailsWith(Code::io));
  EXPECT_EQ(result.error().retry, Retry::needs_user);
}

TEST_F(S3Faults, RefreshedCredentialsArePickedUp) {
  ScriptedS3 server([&](const HttpCall& call, std::size_t) {
    if (call.headers.at("authorization").find("key-first/") == std::string::npos) return Fault{};
    if (call.method == "PUT") credentials("second");  // somebody logs in just then
    return fails(400, "ExpiredToken");
  });
  EXPECT_THAT(put(*open(server.url()), "packs/a", "text"), IsOk());
  EXPECT_EQ(server.calls().back().headers.at("x-amz-security-token"), "token-second");
}

TEST_F(S3Faults, ExpiredCredentialsNeedTheUser) {
  ScriptedS3 server([](const HttpCall&, std::size_t) { return fails(400, "ExpiredToken"); });
  const auto remote = open(server.url());
  const auto result = put(*remote, "packs/a", "text");
  ASSERT_THAT(result, FailsWith(Code::auth_refused));
  EXPECT_EQ(result.error().retry, Retry::needs_user);
  EXPECT_FALSE(result.error().hint.empty());
  EXPECT_LE(server.calls().size(), 2u);
}

TEST_F(S3Faults, NoErrorTellsASecret) {
  ScriptedS3 server([](const HttpCall& call, std::size_t) {
    return reply(ScriptedS3::error(403, "AccessDenied",
                                   "you sent key-first secret-first " + call.headers.at("x-amz-security-token")));
  });
  const auto result = open(server.url())->list("");
  ASSERT_THAT(result, FailsWith(Code::auth_refused));
  EXPECT_THAT(result.error().one_line(), Not(HasSubstr("-first")));
  EXPECT_THAT(result.error().one_line(), HasSubstr("you sent"));
}

class SteppedClock : public os::Clock {
 public:
  explicit SteppedClock(std::int64_t step_ms) : step_ms_(step_ms) {}
  BootTime boot() const override { return os::system_clock().boot(); }
  WallTime wall() const override { return {os::system_clock().wall().ms + step_ms_}; }

 private:
  std::int64_t step_ms_;
};

std::string http_date(WallTime time) {
  static const char* const k_months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::string text = format_rfc3339(time);
  return "Sun, " + text.substr(8, 2) + " " + k_months[std::stoi(text.substr(5, 2)) - 1] + " " + text.substr(0, 4) +
         " " + text.substr(11, 8) + " GMT";
}

TEST_F(S3Faults, AWrongClockIsCorrectedByTheServersAndTold) {
  SteppedClock ahead(3'600'000);
  options_.clock = &ahead;
  const auto script = [](bool with_date) {
    return [=](const HttpCall& call, std::size_t) {
      const std::string right = format_rfc3339(os::system_clock().wall()), stamp = call.headers.at("x-amz-date");
      if (stamp.substr(9, 2) == right.substr(11, 2)) return Fault{};  // the hour
      HttpReply skewed = ScriptedS3::error(403, "RequestTimeTooSkewed");
      if (with_date) skewed.headers.emplace_back("Date", http_date(os::system_clock().wall()));
      return reply(skewed);
    };
  };
  ScriptedS3 server(script(true));
  const auto remote = open(server.url());
  EXPECT_THAT(put(*remote, "packs/a", "text"), IsOk());
  EXPECT_THAT(put(*remote, "packs/b", "text"), IsOk());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_THAT(told_[0], HasSubstr("ahead"));
  ASSERT_THAT(server.url(), ::testing::StartsWith("http://"));
  EXPECT_THAT(told_[0], HasSubstr("anyone on the network could forge over http://"));
  ScriptedS3 silent(script(false));
  const auto result = open(silent.url())->list("");
  ASSERT_THAT(result, FailsWith(Code::auth_refused));
  EXPECT_THAT(result.error().message, HasSubstr("clock"));
}

TEST_F(S3Faults, AListingIsWholeOrAnError) {
  ScriptedS3 server;
  server.page = 7;
  for (int i = 100; i < 200; ++i) server.objects["pre/packs/" + std::to_string(i)] = "x";
  server.objects["pre/"] = "";  // a console's folder
  server.objects["pre/packs/ odd name"] = "";
  server.objects["prefix/packs/1"] = "";  // beside ours
  const auto remote = open(server.url());
  const auto all = remote->list("packs/");
  ASSERT_THAT(all, IsOk());
  ASSERT_EQ(all->size(), 100u);
  EXPECT_EQ(all->front(), (store::Object{"packs/100", 1}));
  EXPECT_EQ(remote->list("")->size(), 100u);
  EXPECT_THAT(*remote->list("packs/19"), ::testing::SizeIs(10));
}

TEST_F(S3Faults, AListingThatBreaksOffIsAnError) {
  const std::string head = "<ListBucketResult><Contents><Key>pre/a</Key><Size>1</Size></Contents>";
  const std::string more =
      "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken></ListBucketResult>";
  for (const std::string& body :
       {head, head + "</ListBucketResult>", head + more, std::string(9 << 20, ' '), std::string("{}")}) {
    ScriptedS3 server([&](const HttpCall&, std::size_t) { return reply({.body = body}); });
    EXPECT_THAT(open(server.url())->list(""), FailsWith(Code::protocol_violation)) << body.substr(0, 200);
  }
  ScriptedS3 half([&](const HttpCall&, std::size_t number) {
    return number > 1 ? fails(403, "AccessDenied") : reply({.body = head + more});
  });
  EXPECT_THAT(open(half.url())->list(""), FailsWith(Code::auth_refused));
  ScriptedS3 hidden([&](const HttpCall&, std::size_t number) {
    return number == 1 ? reply({.body = "<Error><Code>InternalError</Code></Error>"}) : Fault{};
  });
  EXPECT_THAT(open(hidden.url())->list(""), IsOk());
}

TEST_F(S3Faults, ARedirectIsNotFollowed) {
  ScriptedS3 elsewhere;
  ScriptedS3 server([&](const HttpCall&, std::size_t) {
    return reply(
        {.status = 301, .headers = {{"Location", elsewhere.url() + "/bucket"}, {"x-amz-bucket-region", "eu-west-3"}}});
  });
  const auto result = put(*open(server.url()), "packs/a", "text");
  ASSERT_THAT(result, FailsWith(Code::auth_refused));
  EXPECT_THAT(result.error().message, HasSubstr("eu-west-3"));
  EXPECT_TRUE(elsewhere.calls().empty());
}

// Seen by a proxy, which lets nobody through.
TEST_F(S3Faults, WithoutAnEndpointAwsIsAskedByTheNameOfTheBucketWhereItFits) {
  options_.retry_for = Duration::zero();
  for (const auto& [bucket, region, host] :
       {std::tuple{"my-bucket", "eu-west-1", "my-bucket.s3.eu-west-1.amazonaws.com:443"},
        std::tuple{"my.bucket", "eu-west-1", "s3.eu-west-1.amazonaws.com:443"},
        std::tuple{"my-bucket", "cn-north-1", "my-bucket.s3.cn-north-1.amazonaws.com.cn:443"},
        std::tuple{"my-bucket", "", "my-bucket.s3.us-east-1.amazonaws.com:443"}}) {
    testing::HttpServer proxy([](const HttpCall&) { return HttpReply{.status = 403}; });
    ::setenv("https_proxy", proxy.url().c_str(), 1);
    const auto remote = open_s3({bucket, "pre", {}, region, {}}, options_);
    ASSERT_THAT(remote, IsOk());
    EXPECT_THAT((*remote)->list(""), FailsWith(Code::host_unreachable));
    ::unsetenv("https_proxy");
    ASSERT_EQ(proxy.calls().size(), 1u);
    EXPECT_EQ(proxy.calls()[0].method, "CONNECT");
    EXPECT_EQ(proxy.calls()[0].target, host);
  }
}

TEST_F(S3Faults, OurOwnEarlierTryIsNoOtherWriter) {
  ScriptedS3 server([](const HttpCall& call, std::size_t number) {
    return number == 1 && call.method == "PUT" ? Fault{S3Fault{k_cut, true}} : Fault{};
  });
  const auto remote = open(server.url());
  const auto first = remote->put_new("fence/1", as_bytes("mine"));
  ASSERT_THAT(first, IsOk());
  EXPECT_TRUE(*first);
  EXPECT_EQ(server.calls().back().method, "HEAD");
  const auto second = remote->put_new("fence/1", as_bytes("mine"));
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(*second);
}

TEST_F(S3Faults, AnotherWriterIsOneAlsoAfterDoubt) {
  ScriptedS3* behind = nullptr;
  ScriptedS3 server([&](const HttpCall&, std::size_t number) {
    if (number != 1) return Fault{};
    behind->objects["pre/fence/1"] = "theirs";
    return reply(k_cut);
  });
  behind = &server;
  const auto won = open(server.url())->put_new("fence/1", as_bytes("mine"));
  ASSERT_THAT(won, IsOk());
  EXPECT_FALSE(*won);
}

TEST_F(S3Faults, AServerThatCannotWriteOnceSaysSo) {
  ScriptedS3 server([](const HttpCall& call, std::size_t) {
    return call.headers.contains("if-none-match") ? fails(501, "NotImplemented") : Fault{};
  });
  EXPECT_THAT(open(server.url())->put_new("fence/1", as_bytes("mine")), FailsWith(Code::unsupported));
}

class S3Uploads : public S3Faults {
 protected:
  const std::string text_ = pattern(3 * k_part_size + 12'345);
};

TEST_F(S3Uploads, GoInPartsOfWhichLostOnesAreSentAgain) {
  std::set<std::string> lost;
  ScriptedS3 server([&](const HttpCall& call, std::size_t) {
    auto asked = ScriptedS3::query(call);
    return asked.contains("partNumber") && lost.insert(asked["partNumber"]).second ? reply(k_cut) : Fault{};
  });
  ASSERT_THAT(put(*open(server.url()), "packs/a", text_), IsOk());
  EXPECT_TRUE(server.objects.at("pre/packs/a") == text_);
  EXPECT_EQ(server.count("PUT"), 8u);
  EXPECT_TRUE(server.uploads.empty());
}

TEST_F(S3Uploads, LeaveNothingWhenTheyFail) {
  ScriptedS3 server([](const HttpCall& call, std::size_t) {
    return ScriptedS3::query(call)["partNumber"] == "3" ? fails(403, "AccessDenied") : Fault{};
  });
  const auto remote = open(server.url());
  EXPECT_THAT(put(*remote, "packs/a", text_), FailsWith(Code::auth_refused));
  EXPECT_TRUE(server.uploads.empty());
  EXPECT_TRUE(server.objects.empty());
  ScriptedS3 willing([](const HttpCall&, std::size_t) { return Fault{}; });
  const auto other = open(willing.url());
  EXPECT_THAT(put(*other, "packs/b", text_, [](std::uint64_t bytes) { return bytes == 0; }),
              FailsWith(Code::cancelled));
  EXPECT_TRUE(willing.uploads.empty());
  EXPECT_TRUE(willing.objects.empty());
}

TEST_F(S3Uploads, AreNotDoneWhenTheServerSaysSoBehindA200) {
  int completions = 0;
  bool for_ever = false;
  ScriptedS3 server([&](const HttpCall& call, std::size_t) {
    const bool completes = call.method == "POST" && ScriptedS3::query(call).contains("uploadId");
    if (!completes || (++completions > 1 && !for_ever)) return Fault{};
    return reply(
        {.body = "<?xml version=\"1.0\"?>\n<Error><Code>InternalError</Code><Message>later</Message></Error>"});
  });
  options_.retry_for = std::chrono::seconds{2};
  const auto remote = open(server.url());
  ASSERT_THAT(put(*remote, "packs/a", text_), IsOk());
  EXPECT_EQ(completions, 2);
  EXPECT_TRUE(server.objects.at("pre/packs/a") == text_);
  for_ever = true;
  EXPECT_THAT(put(*remote, "packs/b", text_), FailsWith(Code::host_unreachable));
  EXPECT_FALSE(server.objects.contains("pre/packs/b"));
  EXPECT_TRUE(server.uploads.empty());
}

TEST_F(S3Uploads, AreDoneWhenOnlyTheAnswerWasLost) {
  bool lost = false;
  ScriptedS3 server([&](const HttpCall& call, std::size_t) {
    const bool completes = call.method == "POST" && ScriptedS3::query(call).contains("uploadId");
    return completes && !std::exchange(lost, true) ? Fault{S3Fault{k_cut, true}} : Fault{};
  });
  ASSERT_THAT(put(*open(server.url()), "packs/a", text_), IsOk());
  EXPECT_TRUE(server.objects.at("pre/packs/a") == text_);
  EXPECT_EQ(server.count("PUT"), 4u);
}

TEST_F(S3Uploads, BeginAnewWhenTheServerHasForgottenThem) {
  ScriptedS3* behind = nullptr;
  bool forgot = false;
  ScriptedS3 server([&](const HttpCall& call, std::size_t) {
    if (ScriptedS3::query(call)["partNumber"] == "4" && !std::exchange(forgot, true)) behind->uploads.clear();
    return Fault{};
  });
  behind = &server;
  ASSERT_THAT(put(*open(server.url()), "packs/a", text_), IsOk());
  EXPECT_TRUE(server.objects.at("pre/packs/a") == text_);
  EXPECT_TRUE(server.uploads.empty());
}

TEST_F(S3Uploads, AreRefusedWhenTheyBecameSomethingElse) {
  ScriptedS3* behind = nullptr;
  ScriptedS3 server([&](const HttpCall& call, std::size_t) {
    if (call.method == "HEAD" && !behind->objects.empty()) behind->objects.begin()->second.pop_back();
    return Fault{};
  });
  behind = &server;
  EXPECT_THAT(put(*open(server.url()), "packs/a", text_), FailsWith(Code::protocol_violation));
}

}  // namespace
}  // namespace gridctl::transfer::s3_faults_test
