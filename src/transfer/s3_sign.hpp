// SPDX-License-Identifier: Apache-2.0
// Implements AWS Signature Version 4 for S3:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-authenticating-requests.html. Pure: time and credentials are
// given. Not libcurl's own signing (7.88), which needs queries sorted and encoded by hand, and omits the body's hash,
// which servers require.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "http/client.hpp"

namespace gridctl::transfer {

struct S3Credentials {
  std::string access_key, secret_key;
  std::string session_token;  // empty: long-lived ones
  bool operator==(const S3Credentials&) const = default;
};

using S3Query = std::vector<std::pair<std::string, std::string>>;  // not encoded; "uploads" has an empty value

struct S3Message {
  std::string method;
  std::string origin;  // "https://host:port", as http::parse_origin would give it
  std::string path;    // "/bucket/key", not encoded
  S3Query query;
  std::vector<http::Header> headers;  // those to be signed besides host and the x-amz- ones made here
};

struct S3Scope {
  std::string region;
  WallTime now;  // by the server's clock, as far as we know it: it refuses what is 15 minutes off
};

// Holds the destination and all headers: the given ones, x-amz-date, x-amz-content-sha256, Authorization.
struct S3Signed {
  std::string url;
  std::vector<http::Header> headers;
};
// `payload_hash`: SHA-256 of the body in hexadecimal.
[[nodiscard]] S3Signed sign(const S3Message& message, const S3Credentials& credentials, const S3Scope& scope,
                            std::string_view payload_hash);

// Encodes everything but A-Z a-z 0-9 - . _ ~ (and '/', if kept) as %XX.
[[nodiscard]] std::string percent_encode(std::string_view text, bool keep_slash = false);

}  // namespace gridctl::transfer
