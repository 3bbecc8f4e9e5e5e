// SPDX-License-Identifier: Apache-2.0
#include "transfer/s3_sign.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "crypto/sha256.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::string_view k_algorithm = "AWS4-HMAC-SHA256";

// "20130524T000000Z"
std::string stamp(WallTime time) {
  std::string text = format_rfc3339(time).substr(0, 19);  // 2013-05-24T00:00:00
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text + "Z";
}

std::string canonical_query(const S3Query& query) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : query) parts.push_back(percent_encode(name) + "=" + percent_encode(value));
  // Sorts by encoded name, then by encoded value: '=' must not affect the order.
  std::ranges::sort(parts, [](const std::string& a, const std::string& b) {
    const std::size_t a_name = a.find('='), b_name = b.find('=');
    const int names = a.compare(0, a_name, b, 0, b_name);
    return names != 0 ? names < 0 : a.compare(a_name, std::string::npos, b, b_name, std::string::npos) < 0;
  });
  return join(parts, "&");
}

// Returns a header's value as it is signed: without blanks at the ends, with single blanks inside.
std::string folded(std::string_view value) {
  std::string out;
  for (const char c : trim(value))
    if (c != ' ' || out.back() != ' ') out += c;
  return out;
}

struct SignedHeaders {
  std::string canonical, names;  // "name:value\n" each; "a;b"
};
SignedHeaders signed_headers(std::vector<http::Header> headers) {
  for (http::Header& header : headers) header.name = lower(header.name);
  std::ranges::stable_sort(headers, {}, &http::Header::name);
  SignedHeaders out;
  for (const http::Header& header : headers) {
    out.canonical += header.name + ":" + folded(header.value) + "\n";
    out.names += (out.names.empty() ? "" : ";") + header.name;
  }
  return out;
}

std::string scope_text(const S3Scope& scope) {
  return stamp(scope.now).substr(0, 8) + "/" + scope.region + "/s3/aws4_request";
}

std::string signature(const std::string& canonical_request, const S3Credentials& credentials, const S3Scope& scope) {
  const std::string text = std::string(k_algorithm) + "\n" + stamp(scope.now) + "\n" + scope_text(scope) + "\n" +
                           to_hex(crypto::sha256(as_bytes(canonical_request)));
  const std::string first = "AWS4" + credentials.secret_key;
  Digest key = crypto::hmac_sha256(as_bytes(first), as_bytes(stamp(scope.now).substr(0, 8)));
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view("s3"), std::string_view("aws4_request")})
    key = crypto::hmac_sha256(key.bytes, as_bytes(part));
  return to_hex(crypto::hmac_sha256(key.bytes, as_bytes(text)));
}

std::string authority_of(const std::string& origin) { return origin.substr(origin.find("://") + 3); }

std::string canonical_request(const S3Message& message, const std::string& query, const SignedHeaders& headers,
                              std::string_view payload_hash) {
  return message.method + "\n" + percent_encode(message.path, true) + "\n" + query + "\n" + headers.canonical + "\n" +
         headers.names + "\n" + std::string(payload_hash);
}

std::string url_of(const S3Message& message, const std::string& query) {
  return message.origin + percent_encode(message.path, true) + (query.empty() ? "" : "?" + query);
}

}  // namespace

std::string percent_encode(std::string_view text, bool keep_slash) {
  static constexpr std::string_view k_digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (keep_slash && c == '/');
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += {'%', k_digits[byte >> 4], k_digits[byte & 15]};
  }
  return out;
}

S3Signed sign(const S3Message& message, const S3Credentials& credentials, const S3Scope& scope,
              std::string_view payload_hash) {
  std::vector<http::Header> headers = message.headers;
  headers.push_back({"x-amz-content-sha256", std::string(payload_hash)});
  headers.push_back({"x-amz-date", stamp(scope.now)});
  if (!credentials.session_token.empty()) headers.push_back({"x-amz-security-token", credentials.session_token});
  std::vector<http::Header> all = headers;
  all.push_back({"host", authority_of(message.origin)});
  const SignedHeaders signed_ones = signed_headers(std::move(all));
  const std::string query = canonical_query(message.query);
  const std::string request = canonical_request(message, query, signed_ones, payload_hash);
  headers.push_back({"Authorization", std::string(k_algorithm) + " Credential=" + credentials.access_key + "/" +
                                          scope_text(scope) + ", SignedHeaders=" + signed_ones.names +
                                          ", Signature=" + signature(request, credentials, scope)});
  return {url_of(message, query), std::move(headers)};
}

}  // namespace gridctl::transfer
