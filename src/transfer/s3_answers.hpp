// SPDX-License-Identifier: Apache-2.0
// Parses the answers of S3 servers. Pure; all bytes are foreign.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "http/client.hpp"
#include "store/backend.hpp"

namespace gridctl::transfer {

// Holds an <Error>: its code and message, made harmless and cut. The code of an answer without one is empty.
struct S3Error {
  std::string code;     // "NoSuchKey"
  std::string message;  // for people
  std::string region;   // where the bucket is, when that is what is wrong
  bool operator==(const S3Error&) const = default;
};
// Returns nullopt if this is not an <Error>.
[[nodiscard]] std::optional<S3Error> parse_s3_error(std::string_view body);

struct S3Page {
  std::vector<store::Object> objects;  // with their whole names in the bucket, as told
  std::string next;                    // the continuation token; empty on the last page
};
// Holds a page of ListObjectsV2. protocol_violation unless it is complete, says whether more follow, and each key
// begins with `prefix`.
[[nodiscard]] Result<S3Page> parse_s3_page(std::string_view body, std::string_view prefix);

[[nodiscard]] Result<std::string> parse_upload_id(std::string_view body);  // of CreateMultipartUpload
// Checks that CompleteMultipartUpload has succeeded; a failure may have status 200 too.
[[nodiscard]] Result<void> check_completed(std::string_view body);

// "bytes 0-9/100"
struct S3Range {
  std::uint64_t first = 0, last = 0, total = 0;
};
// Fails with protocol_violation unless first <= last < total.
[[nodiscard]] Result<S3Range> parse_content_range(std::string_view header);

}  // namespace gridctl::transfer
