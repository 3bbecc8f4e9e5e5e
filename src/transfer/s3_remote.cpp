// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "http/client.hpp"
#include "transfer/s3.hpp"

namespace gridctl::transfer {
namespace {

constexpr std::size_t k_bucket_min = 3, k_bucket_max = 63;  // bytes, S3's own limits
constexpr std::size_t k_prefix_max = 400;                   // bytes: with an object's name at most S3's 1,024

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

Result<void> check_bucket(std::string_view bucket) {
  const bool proper =
      bucket.size() >= k_bucket_min && bucket.size() <= k_bucket_max && is_alphanumeric(bucket.front()) &&
      is_alphanumeric(bucket.back()) && bucket.find("..") == std::string_view::npos &&
      std::ranges::all_of(bucket, [](char c) { return is_alphanumeric(c) || c == '.' || c == '-' || c == '_'; });
  if (proper) return {};
  return make_error(Code::usage, "'" + sanitize(bucket, 80) + "' is not a valid bucket name");
}

Result<void> check_prefix(std::string_view prefix) {
  const auto no = [&](const char* why) {
    return make_error(Code::usage, "'" + sanitize(prefix, 80) + "' cannot be a prefix in a bucket: " + why);
  };
  if (prefix.empty()) return {};
  if (prefix.size() > k_prefix_max) return no("it is too long");
  if (!std::ranges::all_of(prefix, [](char c) { return c >= 0x20 && c < 0x7F && c != '\\'; }))
    return no("it may contain only printable ASCII without backslashes");
  for (const std::string& part : split(prefix, '/'))
    if (part.empty() || part == "." || part == "..") return no("a part of it is empty, '.' or '..'");
  return {};
}

// Removes what is usually omitted, because the Host header is signed as it is sent.
Result<std::string> normal_endpoint(std::string_view endpoint) {
  if (endpoint.empty()) return std::string{};
  TRY_ASSIGN(http::Origin origin, http::parse_origin(endpoint));
  const std::string_view rest = endpoint.substr(origin.path_at);
  if (!rest.empty() && rest != "/")
    return make_error(Code::usage, "an S3 endpoint must not have a path: " + sanitize(endpoint, 200));
  const std::string_view usual = origin.scheme == "https" ? ":443" : ":80";
  if (origin.authority.ends_with(usual)) origin.authority.resize(origin.authority.size() - usual.size());
  return origin.scheme + "://" + origin.authority;
}

}  // namespace

bool is_s3_region(std::string_view text) {
  return !text.empty() && text.size() <= 40 &&
         std::ranges::all_of(text, [](char c) { return is_alphanumeric(c) || c == '-'; });
}

Result<S3Remote> parse_s3_remote(std::string_view url, std::string_view endpoint, std::string_view region,
                               std::string_view profile) {
  static constexpr std::string_view k_scheme = "s3://";
  if (!url.starts_with(k_scheme)) return make_error(Code::usage, "write a remote in S3 as s3://bucket/prefix");
  url.remove_prefix(k_scheme.size());
  const std::size_t slash = std::min(url.find('/'), url.size());
  S3Remote remote;
  remote.bucket = url.substr(0, slash);
  std::string_view prefix = url.substr(std::min(slash + 1, url.size()));
  if (prefix.ends_with('/')) prefix.remove_suffix(1);
  remote.prefix = prefix;
  TRY(check_bucket(remote.bucket));
  TRY(check_prefix(remote.prefix));
  TRY_ASSIGN(remote.endpoint, normal_endpoint(endpoint));
  if (!region.empty() && !is_s3_region(region))
    return make_error(Code::usage, "'" + sanitize(region, 60) + "' is not a valid S3 region");
  if (profile.size() > 100 || !is_plain(profile)) return make_error(Code::usage, "this is not a valid profile name");
  remote.region = region;
  remote.profile = profile;
  return remote;
}

std::string to_url(const S3Remote& remote) {
  return "s3://" + remote.bucket + (remote.prefix.empty() ? "" : "/" + remote.prefix);
}

}  // namespace gridctl::transfer
