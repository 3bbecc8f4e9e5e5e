// SPDX-License-Identifier: Apache-2.0
#include "ssh/encoding.hpp"

#include <array>
#include <bit>

namespace gridctl::ssh {
namespace {

constexpr std::string_view k_base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::uint32_t, 64> k_round = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// Of keys of some hundred bytes only; the crypto room, which has a fast one, is not below this room.
std::string sha256(std::string_view bytes) {
  std::array<std::uint32_t, 8> state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string message{bytes};
  message.push_back('\x80');
  while (message.size() % 64 != 56) message.push_back('\0');
  append_number(message, static_cast<std::uint32_t>(std::uint64_t{bytes.size()} * 8 >> 32));
  append_number(message, static_cast<std::uint32_t>(std::uint64_t{bytes.size()} * 8));
  for (std::size_t at = 0; at < message.size(); at += 64) {
    std::array<std::uint32_t, 64> w{};
    FieldReader block{std::string_view{message}.substr(at, 64)};
    for (std::size_t i = 0; i < 16; ++i) w[i] = *block.number();
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + k_round[i] + w[i];
      const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> mixed = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state[i] += mixed[i];
  }
  std::string digest;
  for (const std::uint32_t word : state) append_number(digest, word);
  return digest;
}

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

std::string fingerprint_of(std::string_view blob) { return "SHA256:" + encode_base64(sha256(blob), false); }

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
  std::uint32_t value = 0;
  for (const char c : *four) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::optional<std::string_view> FieldReader::text() {
  const auto size = number();
  if (!size) return std::nullopt;
  return take(*size);
}

void append_number(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to.push_back(static_cast<char>(value >> shift & 255));
}

void append_text(std::string& to, std::string_view text) {
  append_number(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

}  // namespace gridctl::ssh
