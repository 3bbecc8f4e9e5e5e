// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"

#include <cmath>
#include <cstdlib>

#include "base/formatted.hpp"

namespace gridctl {

namespace {
int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}
}  // namespace

void append_number(std::string& to, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(value >> shift & 0xFF);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (const char c : bytes.substr(at, 4)) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

std::string to_hex(ByteView bytes) {
  static constexpr char k_digits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (std::byte b : bytes) {
    hex += k_digits[static_cast<unsigned>(b) >> 4];
    hex += k_digits[static_cast<unsigned>(b) & 15];
  }
  return hex;
}

std::optional<Bytes> parse_hex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  Bytes bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes.push_back(static_cast<std::byte>(high << 4 | low));
  }
  return bytes;
}

Result<Digest> parse_digest(std::string_view hex) {
  Digest digest;
  const std::optional<Bytes> bytes = parse_hex(hex);
  if (!bytes || bytes->size() != digest.bytes.size())
    return make_error(Code::protocol_violation, "a digest must have 64 hexadecimal digits");
  std::ranges::copy(*bytes, digest.bytes.begin());
  return digest;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const Error bad = make_error(
      Code::usage, "'" + std::string(text.substr(0, 40)) + "' is not a size: expected e.g. 512MB, 16GiB, 1.5TB");
  const std::string copy(text.substr(0, 64));
  if (copy.empty() || copy[0] < '0' || copy[0] > '9') return bad;
  if (copy.find_first_of("xX") != std::string::npos) return bad;  // strtod would take hexadecimal
  char* end = nullptr;
  const double number = std::strtod(copy.c_str(), &end);
  std::string_view unit(end);
  while (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
  double factor = 1;
  if (!unit.empty() && unit != "B" && unit != "b") {
    static constexpr std::string_view k_letters = "kmgtp";
    const char letter = static_cast<char>(unit[0] | 0x20);
    const std::size_t power = k_letters.find(letter);
    if (power == std::string_view::npos) return bad;
    unit.remove_prefix(1);
    const bool binary = !unit.empty() && unit[0] == 'i';
    if (binary) unit.remove_prefix(1);
    if (!(unit.empty() || unit == "B" || unit == "b")) return bad;
    factor = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  const double bytes = number * factor;
  if (!(bytes >= 0) || bytes > 9e18) return bad;
  return static_cast<std::uint64_t>(bytes);
}

std::string format_size(std::uint64_t bytes) {
  static constexpr const char* k_units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit < 6) value /= 1024, ++unit;
  return formatted(value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, k_units[unit]);
}

}  // namespace gridctl
