// SPDX-License-Identifier: Apache-2.0
#include "source_text.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"

namespace gridctl::tidy {

namespace {
// Where a literal or comment that begins at `at` ends; `at` itself when none begins there.
std::size_t end_of_skipped(std::string_view text, std::size_t at) {
  const auto find = [&](std::string_view what, std::size_t from) {
    const std::size_t found = text.find(what, from);
    return found == std::string_view::npos ? text.size() : found + what.size();
  };
  const bool after_word =
      at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) != 0 || text[at - 1] == '_');
  if (text.substr(at, 2) == "//") return std::min(text.find('\n', at), text.size());
  if (text.substr(at, 2) == "/*") return find("*/", at + 2);
  if (text.substr(at, 2) == "R\"" && !after_word) {
    const std::size_t open = text.find('(', at);
    if (open == std::string_view::npos) return text.size();
    return find(")" + std::string(text.substr(at + 2, open - at - 2)) + "\"", open);
  }
  // Between digits it is a separator: 1'000.
  if (text[at] != '"' && (text[at] != '\'' || after_word)) return at;
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    else if (text[i] == text[at] || text[i] == '\n') return i + 1;
  }
  return text.size();
}
}  // namespace

std::string without_comments_and_literals(std::string_view text) {
  std::string out(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = end_of_skipped(text, at);
    for (std::size_t i = at; i < end; ++i)
      if (out[i] != '\n') out[i] = ' ';
    at = std::max(end, at + 1);
  }
  return out;
}

int line_of(std::string_view text, std::size_t offset) {
  return 1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

std::string room_of(std::string_view path) {
  const std::vector<std::string> parts = split(path, '/');
  if (parts.size() >= 4 && parts[0] == "src" && (parts[1] == "control" || parts[1] == "sched")) return parts[1] + "/" + parts[2];
  if (parts.size() >= 3 && parts[0] == "src") return parts[1];
  return parts.size() >= 2 && parts[0] == "cmd" ? "cmd" : "";
}

std::vector<Include> includes_of(const Source& source) {
  std::vector<Include> includes;
  int number = 0;
  for (const std::string& line : split_lines(source.text)) {
    ++number;
    std::string_view rest = trim(line);
    if (rest.substr(0, 1) != "#") continue;
    rest = trim(rest.substr(1));
    if (rest.substr(0, 7) != "include") continue;
    rest = trim(rest.substr(7));
    const std::size_t end = rest.find_first_of("\">", 1);
    if (rest.size() > 2 && end != std::string_view::npos)
      includes.push_back({std::string(rest.substr(1, end - 1)), rest[0] == '"', number});
  }
  return includes;
}

}  // namespace gridctl::tidy
