// SPDX-License-Identifier: Apache-2.0
// Stores copies of packs and checkpoint records: in a directory, a folder on a provider, or a prefix in an S3 bucket.
// Objects have names like "packs/HEX.pack" (relative, '/' between parts of [A-Za-z0-9._-], no part begins with a dot),
// appear complete or not at all, and never change. Nothing that a remote says is trusted: every reader verifies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/result.hpp"
#include "store/formats.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_object_read_max = 8u << 20;  // bytes of one read()
inline constexpr std::uint64_t k_object_max = 256ull
                                              << 20;     // bytes of one object; a pack has up to 68 MiB and its index
inline constexpr std::size_t k_objects_max = 4'000'000;  // of one listing; a remote that tells of more is refused
inline constexpr std::size_t k_object_name_max = 512;    // bytes

struct Object {
  std::string name;
  std::uint64_t size = 0;  // bytes
  bool operator==(const Object&) const = default;
};

// Holds a request that puts one object: its sender needs no credentials, and the remote accepts only these bytes with
// it.
struct SignedPut {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Reports the bytes of one object that have moved so far; returning false stops (cancelled).
using Moved = std::function<bool(std::uint64_t bytes)>;

// Errors: host_unreachable or timed_out when the remote did not answer (after the backend's own retries; try later),
// auth_refused when it does not accept us (credentials missing, wrong or expired; needs the user), no_space, io,
// protocol_violation when the answer makes no sense, cancelled. One thread at a time; open one backend per thread.
class Backend {
 public:
  virtual ~Backend() = default;
  // Lists every object whose name begins with the prefix, by name; an error if not all could be listed, never a part.
  [[nodiscard]] virtual Result<std::vector<Object>> list(std::string_view prefix) = 0;
  // Reads up to k_object_read_max bytes; fewer only at the object's end. not_found if there is no such object.
  [[nodiscard]] virtual Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) = 0;
  // The object is complete and durable there when this returns. An existing object with this name and size stays as it
  // is: names of objects put this way identify the content. `content` is read in order, and again from the start on a
  // retry.
  [[nodiscard]] virtual Result<void> put(std::string_view name, std::uint64_t size, const ReadAt& content,
                                         const Moved& moved = {}) = 0;
  // For small objects that two writers must not both write: returns false, and changes nothing, if the name is taken;
  // the remote decides, atomically. After an error the object may or may not exist.
  [[nodiscard]] virtual Result<bool> put_new(std::string_view name, ByteView content) = 0;
  // Succeeds even if the object does not exist.
  [[nodiscard]] virtual Result<void> remove(std::string_view name) = 0;
  // Signs a request for another sender to use within some minutes. `content`: SHA-256 of the bytes to put; the remote
  // checks it. nullopt: this remote has no signed requests.
  [[nodiscard]] virtual Result<std::optional<SignedPut>> sign_put(std::string_view name, const Digest& content) {
    static_cast<void>(name), static_cast<void>(content);
    return std::optional<SignedPut>();
  }
};

}  // namespace gridctl::store
