// SPDX-License-Identifier: Apache-2.0
#include "control/follow/legible.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.hpp"

namespace gridctl::control {

namespace {

struct Decoded {
  std::uint32_t code = 0;
  std::size_t size = 0;  // bytes of the text; 0: there is nothing to decode
};

int digit_of(char c, int base) {
  const int value = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
  return value < base ? value : -1;
}

// Reads between `least` and `most` digits.
Decoded digits_of(std::string_view text, std::size_t least, std::size_t most, int base) {
  Decoded out;
  while (out.size < std::min(most, text.size()) && digit_of(text[out.size], base) >= 0)
    out.code = out.code * static_cast<std::uint32_t>(base) + static_cast<std::uint32_t>(digit_of(text[out.size++], base));
  return out.size >= least ? out : Decoded{};
}

Decoded moved_on(std::size_t before, Decoded digits, std::size_t after = 0) {
  return digits.size == 0 ? digits : Decoded{digits.code, before + digits.size + after};
}

// `text` follows a run of backslashes.
Decoded escape_at(std::string_view text) {
  if (text.empty()) return {};
  if (text[0] == 'n' || text[0] == 'r' || text[0] == 't') return {' ', 1};
  if (text[0] == 'x') return moved_on(1, digits_of(text.substr(1), 2, 2, 16));
  if (text[0] == 'u') return moved_on(1, digits_of(text.substr(1), 4, 4, 16));
  return digits_of(text, 3, 3, 8);
}

Decoded entity_at(std::string_view text) {
  constexpr std::pair<std::string_view, std::uint32_t> k_names[] = {
      {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  for (const auto& [name, code] : k_names)
    if (text.starts_with(name)) return {code, name.size()};
  const bool hexadecimal = text.starts_with("&#x") || text.starts_with("&#X");
  if (!text.starts_with("&#")) return {};
  const std::size_t before = hexadecimal ? 3 : 2;
  const Decoded found = hexadecimal ? digits_of(text.substr(3), 1, 6, 16) : digits_of(text.substr(2), 1, 7, 10);
  const bool ends = found.size > 0 && before + found.size < text.size() && text[before + found.size] == ';';
  return ends ? moved_on(before, found, 1) : Decoded{};
}

// Returns the size of terminal colours, and of the lines that frame tables and tracebacks (U+2500 to U+257F).
std::size_t decoration_size(std::string_view text) {
  if (text.size() >= 3 && text[0] == '\xE2' && (text[1] == '\x94' || text[1] == '\x95')) return 3;
  if (!text.starts_with("\x1b[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;:?", 2);
  return end == std::string_view::npos ? text.size() : end + 1;
}

bool is_left_out(std::uint32_t code) { return code <= ' ' || code == '\'' || code == '"' || code == '\\'; }

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) out += static_cast<char>(code);
  else if (code < 0x800) out += {static_cast<char>(0xC0 | code >> 6), static_cast<char>(0x80 | (code & 0x3F))};
  else
    out += {static_cast<char>(0xE0 | (code >> 12 & 0xF)), static_cast<char>(0x80 | (code >> 6 & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
}

// Reads on from `at`; `text` has at least one more byte there.
void read_one(std::string_view text, std::size_t& at, Legible& into) {
  const std::size_t from = at;
  const char c = text[at];
  if (const std::size_t size = c == '\x1b' || c == '\xE2' ? decoration_size(text.substr(at)) : 0; size > 0) {
    at += size;
    return;
  }
  Decoded found{static_cast<unsigned char>(c), 1};
  bool is_byte = true;  // no character of its own above 0x7F: it is a part of one
  if (c == '\\') {
    const std::size_t end = std::min(text.find_first_not_of('\\', at), text.size());
    found = moved_on(end - at, escape_at(text.substr(end)));
    is_byte = found.size == 0 || text[end] != 'u';
    if (found.size == 0) found = {' ', end - at};
  } else if (c == '%') {
    for (Decoded byte = found; byte.code == '%' && byte.size > 0;) {  // "%2541" was encoded twice
      byte = moved_on(found.size, digits_of(text.substr(at + found.size), 2, 2, 16));
      if (byte.size > 0) found = byte;
    }
  } else if (c == '&') {
    if (const Decoded one = entity_at(text.substr(at)); one.size > 0) found = one, is_byte = false;
  }
  at += found.size;
  if (is_left_out(found.code)) return;
  if (is_byte) into.characters += static_cast<char>(found.code);
  else append_utf8(into.characters, found.code);
  into.spans.resize(into.characters.size(), {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(at)});
}

// Returns the length of "[rank 12] " or "[node 0] " at the start of a line.
std::size_t label_size(std::string_view line) {
  if (!line.starts_with("[rank ") && !line.starts_with("[node ")) return 0;
  const std::size_t end = line.find_first_not_of("0123456789", 6);
  return end > 6 && line.substr(std::min(end, line.size())).starts_with("] ") ? end + 2 : 0;
}

}  // namespace

Legible legible(std::string_view text) {
  Legible reading;
  reading.characters.reserve(text.size());
  reading.spans.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) read_one(text, at, reading);
  return reading;
}

std::vector<Legible> legible_by_rank(std::string_view text) {
  std::map<std::string_view, Legible> ranks;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::size_t label = label_size(text.substr(at, end - at));
    Legible& mine = ranks[text.substr(at, label)];
    for (at += label; at < end;) read_one(text.substr(0, end), at, mine);
  }
  std::vector<Legible> readings;
  if (ranks.size() > 1 || (!ranks.empty() && !ranks.begin()->first.empty()))
    for (auto& [label, reading] : ranks) readings.push_back(std::move(reading));
  return readings;
}

}  // namespace gridctl::control
