// SPDX-License-Identifier: Apache-2.0
// Makes a host upload a pack of its own checkpoint as a signed request says. Feature word "uploads"; gridctl-agent(7),
// UPLOADS.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/messages.hpp"

namespace gridctl::wire {

inline constexpr std::string_view k_uploads_feature = "uploads";
inline constexpr std::string_view k_upload_operation = "upload";
inline constexpr std::size_t k_upload_url_max = 8192;             // bytes
inline constexpr std::size_t k_upload_headers_max = 32;           // of the request,
inline constexpr std::size_t k_upload_header_max = 8192;          // and bytes of each
inline constexpr std::uint64_t k_upload_recipe_max = 8ull << 20;  // bytes

// Returns the time limit for a pack of this size: below a Mbit/s, another sender should send it, unless the host may
// send no faster (`limit`, bytes a second; 0: none).
[[nodiscard]] inline Duration upload_time_max(std::uint64_t bytes, std::uint64_t limit) {
  const std::uint64_t slowest = limit == 0 ? 128 * 1024 : std::min<std::uint64_t>(limit / 2 + 1, 128 * 1024);
  return std::chrono::seconds{60 + static_cast<std::int64_t>(bytes / slowest)};
}

// The recipe follows as data and an end record. Reply {} when the pack is built, then short data frames while it is
// being sent, then an end record: accepted, or why not.
struct UploadRequest {
  CheckpointRef checkpoint;  // that the pack is of; what its blobs differ from may be in others of the attempt
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::uint64_t recipe_bytes = 0;
  bool operator==(const UploadRequest&) const = default;
};

// Parsing fails with protocol_violation also for a URL that is neither http nor https, and for non-printable or
// non-ASCII characters in it or the headers.
GRIDCTL_MESSAGE(UploadRequest, parse_upload)

}  // namespace gridctl::wire
