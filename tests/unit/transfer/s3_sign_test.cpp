// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_sign.hpp"

#include <gtest/gtest.h>

#include "crypto/sha256.hpp"
#include "support/results.hpp"

namespace gridctl::transfer::s3_sign_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// The examples of "Authenticating Requests (AWS Signature Version 4)" in the S3 manual.
const S3Credentials k_credentials{"AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", {}};
const S3Scope k_scope{"us-east-1", *parse_rfc3339("2013-05-24T00:00:00Z")};
const std::string k_nothing = to_hex(crypto::sha256({}));
const std::string k_origin = "https://examplebucket.s3.amazonaws.com";

std::string authorization(const S3Signed& ready) {
  for (const http::Header& header : ready.headers)
    if (header.name == "Authorization") return header.value;
  return {};
}

TEST(S3Signature, GivesTheValueOfTheManualForAGet) {
  const S3Signed ready =
      sign({"GET", k_origin, "/test.txt", {}, {{"Range", "bytes=0-9"}}}, k_credentials, k_scope, k_nothing);
  EXPECT_EQ(ready.url, k_origin + "/test.txt");
  EXPECT_EQ(authorization(ready),
            "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
            "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
            "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(S3Signature, GivesTheValueOfTheManualForAPut) {
  const S3Signed ready =
      sign({"PUT",
            k_origin,
            "/test$file.text",
            {},
            {{"Date", "Fri, 24 May 2013 00:00:00 GMT"}, {"x-amz-storage-class", "REDUCED_REDUNDANCY"}}},
           k_credentials, k_scope, to_hex(crypto::sha256(as_bytes("Welcome to Amazon S3."))));
  EXPECT_EQ(ready.url, k_origin + "/test%24file.text");
  EXPECT_THAT(authorization(ready), EndsWith("98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"));
}

TEST(S3Signature, GivesTheValuesOfTheManualForQueries) {
  EXPECT_THAT(authorization(sign({"GET", k_origin, "/", {{"lifecycle", ""}}, {}}, k_credentials, k_scope, k_nothing)),
              EndsWith("fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  const S3Signed list =
      sign({"GET", k_origin, "/", {{"prefix", "J"}, {"max-keys", "2"}}, {}}, k_credentials, k_scope, k_nothing);
  EXPECT_EQ(list.url, k_origin + "/?max-keys=2&prefix=J");
  EXPECT_THAT(authorization(list), EndsWith("34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

// By the reference in Python (hmac, hashlib), which radosgw accepts.
TEST(S3Signature, SignsTokensOddNamesAndQueriesAsTheReferenceDoes) {
  const S3Credentials temporary{"gridkey", "gridsecret", "a+b/c=="};
  const S3Scope scope{"eu-central-1", *parse_rfc3339("2026-11-22T06:30:05.999Z")};
  const S3Message message{"PUT",
                          "http://127.0.0.1:7480",
                          "/bucket/a b/\xC3\xBC+&=~.txt",
                          {{"partNumber", "2"}, {"uploadId", "x/y z"}, {"a", "2"}, {"a-", "1"}, {"a", "1"}},
                          {{"If-None-Match", "*"}, {"X-Amz-Meta-Two", "  b   a "}}};
  const S3Signed ready = sign(message, temporary, scope, to_hex(crypto::sha256(as_bytes("body"))));
  EXPECT_EQ(ready.url,
            "http://127.0.0.1:7480/bucket/a%20b/%C3%BC%2B%26%3D~.txt?a=1&a=2&a-=1&partNumber=2&uploadId=x%2Fy%20z");
  EXPECT_THAT(authorization(ready),
              HasSubstr("SignedHeaders=host;if-none-match;x-amz-content-sha256;x-amz-date;x-amz-meta-two;"
                        "x-amz-security-token, "));
  EXPECT_THAT(authorization(ready), EndsWith("7cf1f419488c90aca7bef23c690d4c161933708031305e836b94b1da0a426671"));
}

}  // namespace
}  // namespace gridctl::transfer::s3_sign_test
