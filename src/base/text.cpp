// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "base/formatted.hpp"

namespace gridctl {

std::string_view trim(std::string_view text) {
  static constexpr std::string_view k_space = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(k_space);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(k_space) - first + 1);
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0;;) {
    const std::size_t end = text.find(separator, at);
    parts.emplace_back(text.substr(at, end - at));
    if (end == std::string_view::npos) return parts;
    at = end + 1;
  }
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (std::string& line : lines)
    if (!line.empty() && line.back() == '\r') line.pop_back();
  return lines;
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

bool all_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

std::string line_value(std::string_view text, std::string_view key) {
  for (const std::string& line : split_lines(text))
    if (line.starts_with(key)) return std::string(trim(std::string_view(line).substr(key.size())));
  return {};
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && !is_digit(name[0]) &&
         std::ranges::all_of(name, [](char c) { return is_digit(c) || is_letter(c) || c == '_'; });
}

namespace {
// Two neighbouring letters that changed places count as one error.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row[b.size()];
}

// Counts how often each letter occurs; upper and lower case, and some signs, count as one.
using Letters = std::array<signed char, 32>;
void count(Letters& letters, std::string_view text, int step) {
  for (const char c : text) letters[static_cast<unsigned char>(c) % letters.size()] += static_cast<signed char>(step);
}

// No two texts with these letters are closer by edit distance (the bag distance of Bartolini, Ciaccia and Patella,
// "String Matching with Metric Trees Using an Approximate Distance", SPIRE 2002): it is far cheaper to compute.
std::size_t least_distance(Letters letters, std::string_view other) {
  count(letters, other, -1);
  int more = 0, less = 0;
  for (const int letter : letters) (letter > 0 ? more : less) += letter;
  return static_cast<std::size_t>(std::max(more, -less));
}
}  // namespace

std::string nearest(std::string_view word, std::span<const std::string> known) {
  static constexpr std::size_t k_word_max = 64;  // bytes; nobody means a known word by more
  if (word.size() > k_word_max) return {};
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(word.size(), 3) / 3 + 1;
  const std::string low = lower(word);
  Letters letters{};
  count(letters, low, +1);
  for (const std::string& candidate : known) {
    if (candidate.size() >= low.size() + best_distance || least_distance(letters, candidate) >= best_distance) continue;
    const std::size_t distance = edit_distance(low, lower(candidate));
    if (distance < best_distance) best = candidate, best_distance = distance;
  }
  return best;
}

std::size_t decode_utf8(std::string_view text, std::size_t at, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(at);
  std::size_t length = first < 0x80                    ? 1
                       : first >= 0xC2 && first < 0xE0 ? 2
                       : first >= 0xE0 && first < 0xF0 ? 3
                       : first >= 0xF0 && first < 0xF5 ? 4
                                                       : 0;
  if (length == 0 || at + length > text.size()) return 0;
  code = length == 1 ? first : first & (0x7Fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return 0;
    code = code << 6 | (byte(at + i) & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  if (overlong || (code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) return 0;
  return length;
}

namespace {
bool is_deceptive(std::uint32_t c) {  // C1 controls, bidirectional, invisible and tag characters
  return (c >= 0x80 && c < 0xA0) || c == 0xAD || c == 0x61C || c == 0x180E || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) ||
         (c >= 0xE0000 && c <= 0xE0FFF) || (c >= 0xFE00 && c <= 0xFE0F && c != 0xFE0F);
}

void append_safe(std::string& out, std::string_view text, std::size_t& at) {
  std::uint32_t code = 0;
  const std::size_t length = decode_utf8(text, at, code);
  if (length == 0) {
    out += formatted("\\x%02X", static_cast<unsigned>(static_cast<std::uint8_t>(text[at])));
    ++at;
    return;
  }
  if (code == '\t') out += '\t';
  else if (code < 0x20) out += {'^', static_cast<char>(code + '@')};
  else if (code == 0x7F) out += "^?";
  else if (is_deceptive(code)) out += formatted("<U+%04X>", code);
  else out += text.substr(at, length);
  at += length;
}
}  // namespace

bool is_plain(std::string_view text) {
  constexpr std::uint64_t k_each = 0x0101010101010101;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data(), 8);
    // The top bit of a byte is set if it is above 0x7F, below 0x20, or 0x7F.
    if (((eight | (eight - 0x20 * k_each) | (eight + k_each)) & 0x80 * k_each) != 0) return false;
  }
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7F; });
}

std::string sanitize_lines(std::string_view text, std::size_t line_max) {
  if (text.size() <= line_max && is_plain(text)) return std::string(text);  // nearly all of what listings show
  std::string out;
  out.reserve(text.size());
  std::size_t line_start = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') ++at;
    if (text[at] == '\n') {
      out += '\n';
      line_start = out.size();
      ++at;
    } else if (out.size() - line_start >= line_max) {
      out += "…";
      at = std::min(text.find('\n', at), text.size());
    } else {
      append_safe(out, text, at);
    }
  }
  return out;
}

std::string sanitize(std::string_view text, std::size_t line_max) {
  if (text.size() <= line_max && is_plain(text)) return std::string(text);  // nearly all of what listings show
  std::string out;
  for (const std::string& line : split_lines(text)) {
    if (line.empty()) continue;
    if (!out.empty()) out += " | ";
    if (out.size() >= line_max) return out += "…";
    out += sanitize_lines(line, line_max - out.size());
  }
  return out;
}

std::string quoted_path(std::string_view path) { return "'" + sanitize(path.substr(0, 200)) + "'"; }

std::string escape_deceptive(std::string_view document) {
  std::string out;
  out.reserve(document.size());
  std::size_t copied = 0;
  for (std::size_t at = 0; at < document.size();) {
    const auto first = static_cast<std::uint8_t>(document[at]);
    std::uint32_t code = first;
    const std::size_t length = first < 0x7F ? 1 : std::max<std::size_t>(1, decode_utf8(document, at, code));
    if (code == 0x7F || (first >= 0x80 && is_deceptive(code))) {
      out += document.substr(copied, at - copied);
      if (code < 0x10000) out += formatted("\\u%04x", code);
      else out += formatted("\\u%04x\\u%04x", 0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF));
      copied = at + length;
    }
    at += length;
  }
  return out += document.substr(copied);
}

std::string shell_quote(std::string_view text) {
  static constexpr std::string_view k_plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";
  if (!text.empty() && text.find_first_not_of(k_plain) == std::string_view::npos) return std::string(text);
  std::string out = "'";
  for (char c : text) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

}  // namespace gridctl
