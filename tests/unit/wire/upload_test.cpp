// SPDX-License-Identifier: Apache-2.0
#include "wire/upload.hpp"

#include "support/results.hpp"

namespace gridctl::wire::upload_test {
namespace {
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;

UploadRequest order() {
  return {{{"k3jf7qw2mxnpa"}, {7}, 12},
          "https://s3.example/bucket/packs/a%20b.pack?x=1",
          {{"x-amz-date", "20261123T205000Z"}, {"Authorization", "AWS4-HMAC-SHA256 a=\"b\\\""}},
          k_upload_recipe_max};
}

TEST(UploadMessages, SurviveARoundTrip) {
  const auto heard = parse_upload(encode(order()));
  ASSERT_THAT(heard, IsOk());
  EXPECT_EQ(*heard, order());
  EXPECT_EQ(request_name(encode(order())), k_upload_operation);
}

// Whatever stands in them goes into a file of settings, line by line.
TEST(UploadMessages, AreRefusedWithWhatIsNoUrlAndNoHeader) {
  for (const char* url : {"", "file:///etc/passwd", "s3.example/a", "https://a\nupload-file = b", "http://a\x7f"}) {
    UploadRequest request = order();
    request.url = url;
    EXPECT_THAT(parse_upload(encode(request)), FailsWith(Code::protocol_violation)) << url;
  }
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{
           {"", "a"}, {"a b", "c"}, {"a:", "c"}, {"a\n", "c"}, {"a", "b\r\nhost: c"}, {"@a", "b"}, {"a", "\xc3\xbc"}}) {
    UploadRequest request = order();
    request.headers.emplace_back(name, value);
    EXPECT_THAT(parse_upload(encode(request)), FailsWith(Code::protocol_violation)) << name << value;
  }
}

TEST(UploadMessages, AreRefusedBeyondTheirLimits) {
  const auto refused = [](const auto& change) {
    UploadRequest request = order();
    change(request);
    EXPECT_THAT(parse_upload(encode(request)), FailsWith(Code::protocol_violation));
  };
  refused([](UploadRequest& request) { ++request.recipe_bytes; });
  refused([](UploadRequest& request) { request.url.append(k_upload_url_max, 'a'); });
  refused([](UploadRequest& request) { request.checkpoint.job.value = "../a"; });
  refused([](UploadRequest& request) { request.headers.resize(k_upload_headers_max + 1, {"a", "b"}); });
  refused([](UploadRequest& request) { request.headers[0].second.append(k_upload_header_max, 'a'); });
}

}  // namespace
}  // namespace gridctl::wire::upload_test
