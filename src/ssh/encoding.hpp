// SPDX-License-Identifier: Apache-2.0
// Implements the encodings of SSH keys: base64, the strings of RFC 4251, SHA-256 fingerprints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl::ssh {

[[nodiscard]] std::string encode_base64(std::string_view bytes, bool padded = true);
[[nodiscard]] std::optional<std::string> decode_base64(std::string_view text);  // padded; white space is ignored

// Returns "SHA256:…" of a raw public key blob, as OpenSSH writes it.
[[nodiscard]] std::string fingerprint_of(std::string_view blob);

// Reads RFC 4251 fields from foreign bytes; every read past the end gives nullopt.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] std::optional<std::uint8_t> byte();
  [[nodiscard]] std::optional<std::uint32_t> number();
  [[nodiscard]] std::optional<std::string_view> text();
  [[nodiscard]] std::optional<std::string_view> take(std::size_t count);
  [[nodiscard]] std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

void append_text(std::string& to, std::string_view text);

}  // namespace gridctl::ssh
