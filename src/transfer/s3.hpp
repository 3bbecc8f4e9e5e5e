// SPDX-License-Identifier: Apache-2.0
// Uses a prefix in an S3 bucket as a remote that keeps copies (store::Backend). Not linked into the agent: it needs
// libcurl. Target gridctl_transfer_s3.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"
#include "store/backend.hpp"

namespace gridctl::transfer {

struct S3Remote {
  std::string bucket;
  std::string prefix;    // "team/ckpt": no '/' at either end; empty: the whole bucket
  std::string endpoint;  // "https://host[:port]", the bucket then stands in the path; empty: AWS
  std::string region;    // empty: AWS_REGION, AWS_DEFAULT_REGION, the profile's, else us-east-1
  std::string profile;   // of ~/.aws/credentials and ~/.aws/config; empty: the environment, then AWS_PROFILE, "default"
  bool operator==(const S3Remote&) const = default;
};

// Parses "s3://bucket/prefix" and its options. usage if a name, URL or region is not valid.
[[nodiscard]] Result<S3Remote> parse_s3_remote(std::string_view url, std::string_view endpoint = {},
                                             std::string_view region = {}, std::string_view profile = {});
[[nodiscard]] std::string to_url(const S3Remote& remote);  // "s3://bucket/prefix"
[[nodiscard]] bool is_s3_region(std::string_view text);  // "eu-central-1": letters, digits and '-', at most 40

struct S3Options {
  Duration retry_for = std::chrono::seconds{60};  // of one call: after that its last error is returned
  Duration connect_max = std::chrono::seconds{10};
  Duration stalled_max = std::chrono::seconds{60};  // without a byte in either direction
  Duration request_max = std::chrono::minutes{30};
  // Called several times a second during waits; true: the call ends with `cancelled`.
  std::function<bool()> cancelled = {};
  // Gets notices of silent corrections, such as a wrong clock; one line. Default: a warning in the log.
  std::function<void(std::string_view)> tell = {};
  os::Clock* clock = nullptr;  // default: the system's
};

// Contacts no server. Credentials are looked up again for each call of the backend, so that refreshed ones are used;
// none of their bytes ever appears in an error or in the log. Besides the errors of store::Backend, calls may give
// host_key_mismatch (the server's TLS certificate is not trusted) and unsupported (put_new, if the server cannot write
// only if a name is free).
[[nodiscard]] Result<std::unique_ptr<store::Backend>> open_s3(const S3Remote& remote, const S3Options& options = {});

}  // namespace gridctl::transfer
