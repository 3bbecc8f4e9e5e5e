// SPDX-License-Identifier: Apache-2.0
#include "os/random.hpp"

#include <sys/random.h>

#include <cerrno>

namespace gridctl::os {

Bytes random_bytes(std::size_t count) {
  Bytes bytes(count);
  for (std::size_t at = 0; at < count;) {
    const ssize_t got = ::getrandom(bytes.data() + at, count - at, 0);
    if (got < 0 && errno == EINTR) continue;
    GRIDCTL_CHECK(got > 0);  // without randomness no id and no operation would be unique: going on is worse than ending
    at += static_cast<std::size_t>(got);
  }
  return bytes;
}

Digest random_digest() {
  Digest digest;
  std::ranges::copy(random_bytes(digest.bytes.size()), digest.bytes.begin());
  return digest;
}

std::uint64_t random_u64() {
  std::uint64_t value = 0;
  for (std::byte b : random_bytes(sizeof value)) value = value << 8 | static_cast<std::uint64_t>(b);
  return value;
}

std::string random_id(std::size_t characters) {
  static constexpr std::string_view k_alphabet = "abcdefghijkmnpqrstuvwxyz23456789";
  static_assert(k_alphabet.size() == 32);
  std::string id;
  id.reserve(characters);
  for (std::byte b : random_bytes(characters)) id += k_alphabet[static_cast<unsigned>(b) & 31];
  return id;
}

}  // namespace gridctl::os
