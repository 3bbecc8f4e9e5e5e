// SPDX-License-Identifier: Apache-2.0
#include "images/registry_answers.hpp"

#include <gmock/gmock.h>

#include "crypto/sha256.hpp"

namespace gridctl::images::registry_answers_test {
namespace {

using ::testing::HasSubstr;

constexpr const char* k_manifest = "application/vnd.oci.image.manifest.v1+json";
constexpr const char* k_index = "application/vnd.oci.image.index.v1+json";

std::string digest(std::string_view type, std::string_view body, std::string_view told = "") {
  const auto found = digest_of_manifest(type, as_bytes(body), told);
  return found ? *found : "error: " + found.error().message;
}
std::string hash(std::string_view body) { return "sha256:" + to_hex(crypto::sha256(as_bytes(body))); }

TEST(Challenge, IsReadWithQuotesAndWithout) {
  const auto told = parse_challenge(R"(Bearer realm="https://auth.example/token",service="registry \"one\"",scope="repository:a:pull")");
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->realm, "https://auth.example/token");
  EXPECT_EQ(told->service, "registry \"one\"");
  EXPECT_EQ(token_url(*told, "a/b"), "https://auth.example/token?service=registry%20%22one%22&scope=repository%3Aa%2Fb%3Apull");
  const auto plain = parse_challenge("bearer  service=x , realm=https://auth.example/t?a=1");
  ASSERT_TRUE(plain.has_value());
  EXPECT_EQ(token_url(*plain, "a"), "https://auth.example/t?a=1&service=x&scope=repository%3Aa%3Apull");
  EXPECT_EQ(token_url({"https://auth.example/t", ""}, "a"), "https://auth.example/t?scope=repository%3Aa%3Apull");
}

TEST(Challenge, OfAnotherKindIsNone) {
  for (const char* header : {"", "Basic realm=\"x\"", "Bearer", "Bearer service=\"x\"", "Bearer realm=\"", "Bearer =,=,\"", "Negotiate"})
    EXPECT_FALSE(parse_challenge(header).has_value()) << header;
}

TEST(Token, FitsIntoAHeader) {
  EXPECT_EQ(*parse_token(R"({"token":"abc","expires_in":300})"), "abc");
  EXPECT_EQ(*parse_token(R"({"access_token":"def"})"), "def");
  for (const std::string& body : {std::string("{}"), std::string("[]"), std::string("<html>"), std::string(R"({"token":"a\r\nHost: x"})"),
                                  std::string(R"({"token":7})"), "{\"token\":\"" + std::string(20'000, 'x') + "\"}"})
    EXPECT_FALSE(parse_token(body).has_value()) << body.substr(0, 50);
}

TEST(Manifest, HasTheHashOfItsBytes) {
  const std::string manifest = R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"digest":"sha256:1","size":2},"layers":[]})";
  EXPECT_EQ(digest(k_manifest, manifest), hash(manifest));
  EXPECT_EQ(digest("Application/vnd.oci.image.manifest.v1+json; charset=utf-8", manifest, hash(manifest)), hash(manifest));
  EXPECT_EQ(digest(k_manifest, manifest, "sha512:00"), hash(manifest)) << "cannot be compared";
  const std::string index = R"({"schemaVersion":2,"manifests":[{"digest":"sha256:1","platform":{"architecture":"amd64"}}]})";
  EXPECT_EQ(digest(k_index, index, hash(index)), hash(index));
}

TEST(Manifest, ThatIsNoneIsRefused) {
  const std::string manifest = R"({"schemaVersion":2,"config":{"digest":"sha256:1"}})";
  EXPECT_THAT(digest(k_manifest, manifest, hash("another")), HasSubstr("but the manifest that it sent has " + hash(manifest)));
  EXPECT_THAT(digest("text/html", "<html>log in</html>"), HasSubstr("its type is 'text/html'"));
  EXPECT_THAT(digest(k_manifest, "<html>log in</html>"), HasSubstr("no manifest"));
  EXPECT_THAT(digest(k_manifest, R"({"schemaVersion":1})"), HasSubstr("lists no image"));
  EXPECT_THAT(digest(k_manifest, R"({"schemaVersion":2})"), HasSubstr("lists no image"));
  EXPECT_THAT(digest(k_index, R"({"schemaVersion":2,"manifests":[]})"), HasSubstr("lists no image"));
  EXPECT_THAT(digest(k_index, manifest), HasSubstr("lists no image"));
  EXPECT_THAT(digest(k_index, R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","manifests":[{}]})"),
              HasSubstr("of another type"));
  EXPECT_THAT(digest("application/vnd.docker.distribution.manifest.v1+prettyjws", manifest), HasSubstr("its type is"));
}

}  // namespace
}  // namespace gridctl::images::registry_answers_test
