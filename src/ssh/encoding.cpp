// SPDX-License-Identifier: Apache-2.0
#include "ssh/encoding.hpp"

#include "crypto/sha256.hpp"

namespace gridctl::ssh {
namespace {

constexpr std::string_view k_base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes, bool padded) {
  std::string text;
  text.reserve(bytes.size() * 4 / 3 + 4);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (count += 8; count >= 6; count -= 6) text.push_back(k_base64[bits >> (count - 6) & 63]);
  }
  if (count > 0) text.push_back(k_base64[bits << (6 - count) & 63]);
  while (padded && text.size() % 4 != 0) text.push_back('=');
  return text;
}

std::optional<std::string> decode_base64(std::string_view text) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  std::size_t characters = 0;
  bool ended = false;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == ' ' || c == '\t') continue;
    ++characters;
    if (c == '=') {
      ended = true;
      continue;
    }
    const std::size_t value = k_base64.find(c);
    if (ended || value == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) bytes.push_back(static_cast<char>(bits >> (count -= 8) & 255));
  }
  if (characters % 4 != 0) return std::nullopt;
  return bytes;
}

std::string fingerprint_of(std::string_view blob) { return "SHA256:" + encode_base64(as_text(crypto::sha256(as_bytes(blob)).bytes), false); }

std::optional<std::string_view> FieldReader::take(std::size_t count) {
  if (count > bytes_.size()) return std::nullopt;
  const std::string_view taken = bytes_.substr(0, count);
  bytes_.remove_prefix(count);
  return taken;
}

std::optional<std::uint8_t> FieldReader::byte() {
  const auto one = take(1);
  if (!one) return std::nullopt;
  return static_cast<std::uint8_t>((*one)[0]);
}

std::optional<std::uint32_t> FieldReader::number() {
  const auto four = take(4);
  if (!four) return std::nullopt;
  return number_at(*four, 0);
}

std::optional<std::string_view> FieldReader::text() {
  const auto size = number();
  if (!size) return std::nullopt;
  return take(*size);
}

void append_text(std::string& to, std::string_view text) {
  append_number(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

}  // namespace gridctl::ssh
