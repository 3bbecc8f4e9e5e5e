// SPDX-License-Identifier: Apache-2.0
// Holds pure text functions that more than one room needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl {

// Compares words that other programs write; our own are enumerations, or constants.
[[nodiscard]] constexpr bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  for (const std::string_view one : words)
    if (one == word) return true;
  return false;
}
[[nodiscard]] std::string_view trim(std::string_view text);
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);
[[nodiscard]] std::vector<std::string> split_lines(std::string_view text);  // '\n' or "\r\n"; no empty last line
[[nodiscard]] std::string join(std::span<const std::string> parts, std::string_view separator);
// Returns what follows the key on the first line that begins with it, without blanks around it; "" if no line does.
[[nodiscard]] std::string line_value(std::string_view text, std::string_view key);
[[nodiscard]] std::string lower(std::string_view text);  // ASCII
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
[[nodiscard]] constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
[[nodiscard]] bool all_digits(std::string_view text);  // false for an empty text
[[nodiscard]] bool is_variable_name(std::string_view name);  // of a shell: [A-Za-z_][A-Za-z0-9_]*, at most 255 bytes

// Returns the known word nearest to `word` by edit distance, or empty if none is near enough to be meant (distance <=
// 1/3).
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> known);

// Returns true for printable ASCII only: one byte is one column, and nothing needs to be made safe.
[[nodiscard]] bool is_plain(std::string_view text);

// Decodes one UTF-8 character at text[at]; returns its length, or 0 when invalid (overlong, surrogate, cut off).
[[nodiscard]] std::size_t decode_utf8(std::string_view text, std::size_t at, std::uint32_t& code);

// Makes foreign text safe for a terminal, as one line: line breaks become " | ", control characters caret notation
// (^[), C1, bidirectional and invisible ones <U+XXXX>, invalid UTF-8 \xNN; '\t' stays. Cut at `line_max` bytes. Every
// byte from a host that reaches a terminal passes through here, or through sanitize_lines() if lines are
// intended.
[[nodiscard]] std::string sanitize(std::string_view text, std::size_t line_max = 4096);
// Works like sanitize(), but keeps '\n'; a '\r' before it is dropped. Only for callers that give each line its own
// place, such as a program's output: at the start of a line, a host's words would pass for ours.
[[nodiscard]] std::string sanitize_lines(std::string_view text, std::size_t line_max = 4096);
// Formats a host's path for a message: safe, cut at 200 bytes, in quotes.
[[nodiscard]] std::string quoted_path(std::string_view path);

// Escapes in complete JSON of valid UTF-8: DEL, C1, bidirectional and invisible characters become \uXXXX.
[[nodiscard]] std::string escape_deceptive(std::string_view json);

// Quotes for /bin/sh: 'it'\''s'. Plain words are left as they are.
[[nodiscard]] std::string shell_quote(std::string_view text);

}  // namespace gridctl
