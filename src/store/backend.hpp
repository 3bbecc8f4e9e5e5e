// SPDX-License-Identifier: Apache-2.0
// Where copies of packs and checkpoint records are kept: a directory, a folder on a provider, a prefix in an S3 bucket.
// Objects have names like "packs/HEX.pack" (relative, '/' between parts of [A-Za-z0-9._-], no part begins with a dot),
// appear whole or not at all, and never change. Nothing that a remote says is trusted: whoever reads, verifies.
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

// A request that puts one object: whoever sends it needs no credentials, and the remote takes no other bytes with it.
struct SignedPut {
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Bytes that have moved so far, of one object; false stops (cancelled).
using Moved = std::function<bool(std::uint64_t bytes)>;

// Errors: host_unreachable or timed_out when the remote did not answer (after the backend's own retries; try later),
// auth_refused when it does not accept us (credentials missing, wrong or expired; needs the user), no_space, io,
// protocol_violation when the answer makes no sense, cancelled. One thread at a time; open one backend per thread.
class Backend {
 public:
  virtual ~Backend() = default;
  // Every object whose name begins with the prefix, by name; an error when not all could be listed, never a part.
  [[nodiscard]] virtual Result<std::vector<Object>> list(std::string_view prefix) = 0;
  // Up to k_object_read_max bytes; fewer only at the object's end. not_found when there is no such object.
  [[nodiscard]] virtual Result<Bytes> read(std::string_view name, std::uint64_t offset, std::size_t size) = 0;
  // Whole and durable there when it returns. An object of this name and size is left as it is: names of what is put
  // this way tell the content. `content` is read in order, and again from the start when something is tried again.
  [[nodiscard]] virtual Result<void> put(std::string_view name, std::uint64_t size, const ReadAt& content,
                                         const Moved& moved = {}) = 0;
  // For small things that two writers must not both write: false, and nothing changed, when the name is taken; it is
  // decided by the remote, atomically. After an error it may be there or not.
  [[nodiscard]] virtual Result<bool> put_new(std::string_view name, ByteView content) = 0;
  // Success also when it is not there.
  [[nodiscard]] virtual Result<void> remove(std::string_view name) = 0;
  // For somebody else, to be sent within some minutes. `content`: SHA-256 of what is to be put; the remote checks it.
  // nullopt: such a remote has no signed requests.
  [[nodiscard]] virtual Result<std::optional<SignedPut>> sign_put(std::string_view name, const Digest& content) {
    static_cast<void>(name), static_cast<void>(content);
    return std::optional<SignedPut>();
  }
};

}  // namespace gridctl::store
