// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "support/results.hpp"
#include "support/temp_dir.hpp"
#include "transfer/s3.hpp"
#include "transfer/s3_credentials.hpp"

namespace gridctl::transfer::s3_remote_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(S3RemoteName, IsTakenApart) {
  const auto remote = parse_s3_remote("s3://my-bucket/team=a/ckpt run/", "HTTPS://S3.Example.com:443/", "eu-1", "work");
  ASSERT_THAT(remote, IsOk());
  EXPECT_EQ(*remote, (S3Remote{"my-bucket", "team=a/ckpt run", "https://s3.example.com", "eu-1", "work"}));
  EXPECT_EQ(to_url(*remote), "s3://my-bucket/team=a/ckpt run");
  EXPECT_EQ(parse_s3_remote("s3://bucket", "http://10.0.0.1:7480")->endpoint, "http://10.0.0.1:7480");
  EXPECT_EQ(to_url(*parse_s3_remote("s3://bucket/")), "s3://bucket");
}

TEST(S3RemoteName, IsRefusedWhenOdd) {
  for (const char* url :
       {"", "bucket", "s3:bucket", "s3://", "s3://b", "s3:///prefix", "s3://bu cket", "s3://-ab", "s3://a..b",
        "s3://abc/a//b", "s3://abc/../b", "s3://abc/a/./b", "s3://abc/a\nb", "s3://abc/\xC3\xBC"})
    EXPECT_THAT(parse_s3_remote(url), FailsWith(Code::usage)) << url;
  EXPECT_THAT(parse_s3_remote("s3://abc/" + std::string(401, 'a')), FailsWith(Code::usage));
  for (const char* endpoint :
       {"s3.example.com", "ftp://host", "http://", "https://host/path", "https://user@host", "http://[::80:80",
        "http://[]", "http://a:b", "https://a b", "https://a%2fb", "https://a,b"})
    EXPECT_THAT(parse_s3_remote("s3://abc", endpoint), FailsWith(Code::usage)) << endpoint;
  EXPECT_THAT(parse_s3_remote("s3://abc", {}, "eu/1"), FailsWith(Code::usage));
  EXPECT_THAT(parse_s3_remote("s3://abc", {}, {}, "a\nb"), FailsWith(Code::usage));
  EXPECT_THAT(open_s3({"abc", "a/../b", {}, {}, {}}), FailsWith(Code::usage));
}

class S3LoginOf : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(home_ / ".aws"); }
  void file(const std::string& name, const std::string& text) {
    ASSERT_THAT(os::write_file_durably(home_ / ".aws" / name, text), IsOk());
  }
  Result<S3Login> find(const S3Remote& remote = {}) {
    return find_s3_login(remote, {[this](std::string_view name) -> std::optional<std::string> {
                                   const auto found = variables_.find(std::string(name));
                                   return found == variables_.end() ? std::nullopt : std::optional(found->second);
                                 },
                                 home_.path()});
  }
  gridctl::testing::TempDir home_;
  std::map<std::string, std::string> variables_;
};

TEST_F(S3LoginOf, ComesFromTheEnvironmentFirst) {
  file("credentials", "[default]\naws_access_key_id = filekey\naws_secret_access_key = filesecret\n");
  variables_ = {
      {"AWS_ACCESS_KEY_ID", "envkey"}, {"AWS_SECRET_ACCESS_KEY", "envsecret"}, {"AWS_SESSION_TOKEN", "envtoken"}};
  const auto login = find();
  ASSERT_THAT(login, IsOk());
  EXPECT_EQ(login->credentials, (S3Credentials{"envkey", "envsecret", "envtoken"}));
  EXPECT_EQ(login->region, "us-east-1");
  variables_["AWS_SECRET_ACCESS_KEY"] = "";  // half of them is none
  EXPECT_EQ(find()->credentials.access_key, "filekey");
}

TEST_F(S3LoginOf, ComesFromTheProfileOfThePlaceOrTheEnvironment) {
  file("credentials",
       "# ours\n[default]\naws_access_key_id=one\naws_secret_access_key=1/+=\n\n[ work ]\r\naws_access_key_id = two\r\n"
       "aws_secret_access_key = 2\r\naws_session_token = t==\r\n; end\n");
  file("config",
       "[default]\nregion = eu-west-1\ns3 =\n  max_queue_size = 5\n  aws_access_key_id = wrong\n[profile "
       "work]\nregion=eu-north-1\n"
       "[profile third]\naws_access_key_id = three\naws_secret_access_key = 3\n");
  EXPECT_EQ(find()->credentials, (S3Credentials{"one", "1/+=", {}}));
  EXPECT_EQ(find()->region, "eu-west-1");
  variables_["AWS_PROFILE"] = "work";
  EXPECT_EQ(find()->credentials, (S3Credentials{"two", "2", "t=="}));
  EXPECT_EQ(find()->region, "eu-north-1");
  variables_["AWS_REGION"] = "us-west-2";
  EXPECT_EQ(find()->region, "us-west-2");
  variables_["AWS_ACCESS_KEY_ID"] = variables_["AWS_SECRET_ACCESS_KEY"] = "environment";
  EXPECT_EQ(find({"b", {}, {}, "eu-1", "third"})->credentials.access_key, "three");
  EXPECT_EQ(find({"b", {}, {}, "eu-1", "third"})->region, "eu-1");
}

TEST_F(S3LoginOf, IsReadAnewEachTime) {
  file("credentials", "[default]\naws_access_key_id=one\naws_secret_access_key=1\n");
  EXPECT_EQ(find()->credentials.access_key, "one");
  file("credentials", "[default]\naws_access_key_id=two\naws_secret_access_key=2\n");
  EXPECT_EQ(find()->credentials.access_key, "two");
}

TEST_F(S3LoginOf, SaysWhatIsMissingButNeverWhatIsThere) {
  const auto none = find();
  ASSERT_THAT(none, FailsWith(Code::auth_refused));
  EXPECT_THAT(none.error().message, HasSubstr("'default'"));
  EXPECT_EQ(none.error().hint, "aws configure");
  file("config", "[profile sso]\nsso_session = corp\n[profile run]\ncredential_process = /bin/get secretword\n");
  file("credentials",
       "[half]\naws_secret_access_key = secretword\n[odd]\naws_access_key_id = a\naws_secret_access_key = secret "
       "word\n");
  for (const char* profile : {"sso", "run", "half", "odd", "absent"}) {
    const auto login = find({"b", {}, {}, {}, profile});
    ASSERT_THAT(login, FailsWith(Code::auth_refused)) << profile;
    EXPECT_THAT(login.error().one_line() + login.error().hint, Not(HasSubstr("word"))) << profile;
  }
  EXPECT_THAT(find({"b", {}, {}, {}, "sso"}).error().message, HasSubstr("sso_session"));
}

TEST_F(S3LoginOf, RefusesARegionThatIsNone) {
  variables_ = {{"AWS_ACCESS_KEY_ID", "k"}, {"AWS_SECRET_ACCESS_KEY", "s"}, {"AWS_REGION", "evil.example.com/#"}};
  EXPECT_THAT(find(), FailsWith(Code::usage));
}

}  // namespace
}  // namespace gridctl::transfer::s3_remote_test
