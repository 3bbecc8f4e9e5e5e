// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_answers.hpp"

#include <gtest/gtest.h>

#include <set>

#include "support/results.hpp"
#include "transfer/s3_wire.hpp"
#include "xml/document.hpp"

namespace gridctl::transfer::s3_answers_test {
namespace {

using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string k_head = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";

std::string listing(const std::string& inside) {
  return k_head + "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name>" + inside +
         "</ListBucketResult>";
}
std::string contents(const std::string& key, const std::string& size) {
  return "<Contents><Key>" + key +
         "</Key><LastModified>2026-11-22T06:00:00.000Z</LastModified><ETag>&quot;a&quot;</ETag>"
         "<Size>" +
         size + "</Size></Contents>";
}
const std::string k_last = "<IsTruncated>false</IsTruncated>";

TEST(S3Xml, ReadsElementsTextAndEntities) {
  const auto root = xml::parse("\xEF\xBB\xBF" + k_head +
                              "<!-- a > b --><a:Root x='>' y=\"'\"> one <B/><C>&lt;&#47;&#x2F;&amp;</C>two"
                              "<!-- <D> --><B >x</B ></a:Root>\n<!-- end -->\n");
  ASSERT_THAT(root, IsOk());
  EXPECT_EQ(root->name, "Root");
  EXPECT_EQ(root->text, " one two");
  EXPECT_EQ(root->children.size(), 3u);
  EXPECT_EQ(root->text_of("C"), "<//&");
  EXPECT_EQ(root->text_of("absent"), "");
  EXPECT_EQ(xml::parse("<a>&#xE9;&#x20AC;&#x1F600;</a>")->text, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
}

TEST(S3Xml, TakesNoPartForTheWhole) {
  const std::string whole = listing(contents("a", "1") + "<IsTruncated>false</IsTruncated>");
  ASSERT_THAT(xml::parse(whole), IsOk());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_THAT(xml::parse(std::string_view(whole).substr(0, size)), FailsWith(Code::protocol_violation)) << size;
}

TEST(S3Xml, RefusesWhatIsOdd) {
  for (const char* text : {"",
                           "text",
                           "</a>",
                           "<a></b>",
                           "<a><b></a></b>",
                           "<a/><b/>",
                           "<a/>x",
                           "<a>&nbsp;</a>",
                           "<a>&#0;</a>",
                           "<a>&#xD800;</a>",
                           "<a>&#x110000;</a>",
                           "<a>& b</a>",
                           "<a>&#;</a>",
                           "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>",
                           "< a/>",
                           "<a b='<'/>",
                           "<>x</>",
                           "<a:>x</a:>"})
    EXPECT_THAT(xml::parse(text), FailsWith(Code::protocol_violation)) << text;
}

TEST(S3Xml, HasLimits) {
  const auto nested = [](std::size_t depth) {
    std::string text;
    for (std::size_t i = 0; i < depth; ++i) text += "<a>";
    for (std::size_t i = 0; i < depth; ++i) text += "</a>";
    return text;
  };
  EXPECT_THAT(xml::parse(nested(xml::k_depth_max)), IsOk());
  EXPECT_THAT(xml::parse(nested(xml::k_depth_max + 1)), FailsWith(Code::protocol_violation));
  EXPECT_THAT(xml::parse(nested(1'000'000)), FailsWith(Code::protocol_violation));
  std::string many = "<r>";
  for (std::size_t i = 0; i < xml::k_elements_max; ++i) many += "<a/>";
  EXPECT_THAT(xml::parse(many + "</r>"), FailsWith(Code::protocol_violation));
}

TEST(S3Answers, ReadListings) {
  const auto last = parse_s3_page(
      listing(contents("p/a", "0") + contents("p/&#x62;", "123") + "<KeyCount>2</KeyCount>" + k_last), "p/");
  ASSERT_THAT(last, IsOk());
  EXPECT_THAT(last->objects, ElementsAre(store::Object{"p/a", 0}, store::Object{"p/b", 123}));
  EXPECT_EQ(last->next, "");
  const auto first = parse_s3_page(
      listing("<IsTruncated> true </IsTruncated><NextContinuationToken>a/b==&amp;</NextContinuationToken>" +
              contents("p/a", "0")),
      "p/");
  ASSERT_THAT(first, IsOk());
  EXPECT_EQ(first->next, "a/b==&");
}

TEST(S3Answers, RefuseListingsThatMayNotBeAll) {
  for (const std::string& body :
       {listing(""), listing("<IsTruncated/>"), listing("<IsTruncated>maybe</IsTruncated>"),
        listing("<IsTruncated>true</IsTruncated>"), listing("<IsTruncated>true</IsTruncated><NextContinuationToken/>"),
        listing("<IsTruncated>true</IsTruncated><NextContinuationToken>" + std::string(3000, 'x') +
                "</NextContinuationToken>"),
        listing(contents("p/a", "0") + "<KeyCount>2</KeyCount>" + k_last), listing(contents("p/a", "") + k_last),
        listing(contents("p/a", "-1") + k_last), listing(contents("p/a", "99999999999999999999") + k_last),
        listing(contents("", "1") + k_last), listing(contents("other", "1") + k_last),
        listing(contents("p/" + std::string(2000, 'a'), "1") + k_last),
        listing("<Contents><Size>1</Size></Contents>" + k_last),
        listing("<CommonPrefixes><Prefix>p/a/</Prefix></CommonPrefixes>" + k_last),
        std::string("<html><body>Welcome</body></html>"), std::string("<Error><Code>InternalError</Code></Error>"),
        std::string()})
    EXPECT_THAT(parse_s3_page(body, "p/"), FailsWith(Code::protocol_violation)) << body.substr(0, 300);
}

TEST(S3Answers, ReadErrorsAndMakeThemHarmless) {
  const auto error = parse_s3_error(
      k_head + "<Error><Code>NoSuchKey</Code><Message>The\nkey \x1B[31m</Message><Region>eu-west-1</Region></Error>");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, "NoSuchKey");
  EXPECT_EQ(error->message, "The | key ?[31m");
  EXPECT_EQ(error->region, "eu-west-1");
  EXPECT_EQ(parse_s3_error("<Error><Code>\x1B evil</Code></Error>")->code, "Unknown");
  EXPECT_LE(parse_s3_error("<Error><Code>A</Code><Message>" + std::string(10'000, 'x') + "</Message></Error>")
                ->message.size(),
            300u);
  for (const char* text : {"", "<html/>", "not found", "<Error><Code>NoSuchKey</Code>"})
    EXPECT_FALSE(parse_s3_error(text)) << text;
}

TEST(S3Answers, ReadUploads) {
  EXPECT_EQ(
      *parse_upload_id("<InitiateMultipartUploadResult><UploadId> 2~a/b </UploadId></InitiateMultipartUploadResult>"),
      "2~a/b");
  for (const std::string& body :
       {std::string("<InitiateMultipartUploadResult><UploadId/></InitiateMultipartUploadResult>"),
        std::string("<Other><UploadId>1</UploadId></Other>"),
        "<InitiateMultipartUploadResult><UploadId>" + std::string(5000, 'x') +
            "</UploadId></InitiateMultipartUploadResult>"})
    EXPECT_THAT(parse_upload_id(body), FailsWith(Code::protocol_violation)) << body.substr(0, 100);
  // radosgw leaves the ETag empty.
  EXPECT_THAT(check_completed("<CompleteMultipartUploadResult><ETag></ETag></CompleteMultipartUploadResult>"), IsOk());
  EXPECT_THAT(check_completed("<Error><Code>InternalError</Code></Error>"), FailsWith(Code::protocol_violation));
  EXPECT_THAT(check_completed(""), FailsWith(Code::protocol_violation));
}

TEST(S3Answers, ReadRanges) {
  const auto range = parse_content_range("bytes 10-19/100");
  ASSERT_THAT(range, IsOk());
  EXPECT_EQ(range->first, 10u);
  EXPECT_EQ(range->last, 19u);
  EXPECT_EQ(range->total, 100u);
  for (const char* text : {"", "bytes */100", "bytes 10-19/*", "bytes 19-10/100", "bytes 0-100/100", "bytes -1-5/10",
                           "bytes 0-9/10x", "items 0-9/10", "bytes /5-3", "bytes 0-99999999999999999999/1"})
    EXPECT_THAT(parse_content_range(text), FailsWith(Code::protocol_violation)) << text;
}

http::Answer status(int value) {
  http::Answer answer;
  answer.status = value;
  return answer;
}

TEST(S3Verdicts, TellWhatHelps) {
  struct Row {
    int status;
    const char* code;
    S3Next next;
    Code error;
  };
  for (const Row& row : {Row{200, "", S3Next::take, Code::internal},
                         {206, "", S3Next::take, Code::internal},
                         {200, "InternalError", S3Next::again, Code::host_unreachable},
                         {200, "AccessDenied", S3Next::fail, Code::auth_refused},
                         {404, "NoSuchKey", S3Next::take, Code::internal},
                         {404, "NoSuchUpload", S3Next::take, Code::internal},
                         {404, "NoSuchBucket", S3Next::fail, Code::io},
                         {404, "", S3Next::fail, Code::protocol_violation},  // some web server: not "no such object"
                         {412, "PreconditionFailed", S3Next::take, Code::internal},
                         {416, "InvalidRange", S3Next::take, Code::internal},
                         {501, "NotImplemented", S3Next::take, Code::internal},
                         {500, "InternalError", S3Next::again, Code::host_unreachable},
                         {503, "SlowDown", S3Next::again, Code::host_unreachable},
                         {503, "", S3Next::again, Code::host_unreachable},
                         {429, "", S3Next::again, Code::host_unreachable},
                         {400, "RequestTimeout", S3Next::again, Code::host_unreachable},
                         {400, "XAmzContentSHA256Mismatch", S3Next::again, Code::host_unreachable},
                         {409, "ConditionalRequestConflict", S3Next::again, Code::host_unreachable},
                         {400, "ExpiredToken", S3Next::again_fresh, Code::auth_refused},
                         {403, "RequestTimeTooSkewed", S3Next::again_timed, Code::auth_refused},
                         {403, "AccessDenied", S3Next::fail, Code::auth_refused},
                         {403, "InvalidAccessKeyId", S3Next::fail, Code::auth_refused},
                         {401, "", S3Next::fail, Code::auth_refused},
                         {403, "QuotaExceeded", S3Next::fail, Code::no_space},
                         {507, "", S3Next::fail, Code::no_space},
                         {307, "TemporaryRedirect", S3Next::fail, Code::host_unreachable},
                         {301, "PermanentRedirect", S3Next::fail, Code::auth_refused},
                         {400, "MalformedXML", S3Next::fail, Code::protocol_violation}}) {
    const S3Verdict verdict = judge(status(row.status), {row.code, "why", ""}, false);
    EXPECT_EQ(verdict.next, row.next) << row.status << row.code;
    if (row.next == S3Next::take) continue;
    EXPECT_EQ(verdict.error.code, row.error) << row.status << row.code;
  }
  EXPECT_EQ(judge(status(403), {}, true).next, S3Next::take);
  EXPECT_EQ(judge(status(503), {}, true).next, S3Next::again);
}

TEST(S3Verdicts, TellTheRegionOfTheBucket) {
  http::Answer answer = status(301);
  answer.headers = {{"x-amz-bucket-region", "eu-west-3"}};
  EXPECT_THAT(judge(answer, {"PermanentRedirect", "", ""}, false).error.message, HasSubstr("eu-west-3"));
  EXPECT_THAT(judge(status(400), {"AuthorizationHeaderMalformed", "", "sa-east-1"}, false).error.hint,
              HasSubstr("--region sa-east-1"));
  EXPECT_EQ(judge(status(400), {"AuthorizationHeaderMalformed", "", "a b;rm"}, false).error.hint, "");
}

TEST(S3Backoff, GrowsAtRandomUpToItsBound) {
  EXPECT_EQ(backoff(1, 0), Duration::zero());
  EXPECT_EQ(backoff(1, UINT64_MAX), std::chrono::milliseconds{400});
  EXPECT_EQ(backoff(2, UINT64_MAX), std::chrono::milliseconds{800});
  EXPECT_EQ(backoff(60, UINT64_MAX), std::chrono::seconds{20});
  EXPECT_GT(backoff(3, UINT64_MAX / 2), std::chrono::milliseconds{700});
  EXPECT_LT(backoff(3, UINT64_MAX / 2), std::chrono::milliseconds{900});
}

}  // namespace
}  // namespace gridctl::transfer::s3_answers_test
