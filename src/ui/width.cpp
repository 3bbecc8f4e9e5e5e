// SPDX-License-Identifier: Apache-2.0
#include "ui/width.hpp"

#include <cstdint>

#include "base/text.hpp"

namespace gridctl::ui {

namespace {
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
};

Character decode(std::string_view text) {
  std::uint32_t code = 0;
  const std::size_t bytes = decode_utf8(text, 0, code);
  return bytes == 0 ? Character{'?', 1} : Character{code, bytes};
}

struct Range {
  std::uint32_t first, last;
};
constexpr Range k_zero[] = {{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},
                            {0x064b, 0x065f}, {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
                            {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xe0100, 0xe01ef}};
constexpr Range k_wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},  {0x3400, 0x4dbf},
                            {0x4e00, 0x9fff},   {0xa000, 0xa4cf},   {0xac00, 0xd7a3},  {0xf900, 0xfaff},
                            {0xfe30, 0xfe6f},   {0xff00, 0xff60},   {0xffe0, 0xffe6},  {0x1f300, 0x1f64f},
                            {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};

template <std::size_t N>
bool within(const Range (&ranges)[N], std::uint32_t code) {
  for (const Range& range : ranges)
    if (code >= range.first && code <= range.last) return true;
  return false;
}

std::size_t width_of(std::uint32_t code) {
  if (within(k_zero, code)) return 0;
  return within(k_wide, code) ? 2 : 1;
}

std::vector<std::string> wrap_line(std::string_view line, std::size_t columns) {
  std::vector<std::string> lines;
  std::string current;
  for (const std::string& word : split(line, ' ')) {
    if (!current.empty() && display_width(current) + 1 + display_width(word) > columns) {
      lines.push_back(std::move(current));
      current.clear();
    } else if (!current.empty()) {
      current += ' ';
    }
    current += word;
  }
  lines.push_back(std::move(current));
  return lines;
}
}  // namespace

std::size_t display_width(std::string_view text) {
  if (is_plain(text)) return text.size();
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = decode(text);
    width += width_of(character.code);
    text.remove_prefix(character.bytes);
  }
  return width;
}

std::string truncate(std::string_view text, std::size_t columns) {
  if (display_width(text) <= columns) return std::string(text);
  if (columns == 0) return {};
  std::string kept;
  std::size_t width = 0;
  while (!text.empty()) {
    const Character character = decode(text);
    if (width + width_of(character.code) > columns - 1) break;
    width += width_of(character.code);
    kept += text.substr(0, character.bytes);
    text.remove_prefix(character.bytes);
  }
  return kept + "…";
}

std::string pad_right(std::string_view text, std::size_t columns) {
  const std::size_t width = display_width(text);
  return std::string(text) + std::string(columns > width ? columns - width : 0, ' ');
}

std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  for (const std::string& line : split(text, '\n'))
    for (std::string& piece : wrap_line(line, columns)) lines.push_back(std::move(piece));
  return lines;
}

}  // namespace gridctl::ui
