// SPDX-License-Identifier: Apache-2.0
#include "cli/transcript.hpp"

#include <regex>
#include <stdexcept>

#include "base/text.hpp"

namespace gridctl::tests {

namespace {
const std::map<std::string, std::string>& patterns() {
  static const std::map<std::string, std::string> k_patterns{
      {"id", "[a-z0-9]{13}"},
      {"time", "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z"},
      {"clock", "(?:[0-9]{4}-[0-9]{2}-[0-9]{2} )?[0-9]{2}:[0-9]{2}:[0-9]{2}"},  // with the day, of yesterday
      {"n", "[0-9]+(?:\\.[0-9]+)?"},
      {"size", "[0-9.]+ (?:B|KiB|MiB|GiB|TiB)"},
      {"took", "(?:just now|[0-9.]+(?:ms|s|m|h|d)[0-9smh]*(?: ago)?)"},
      {"word", "[^ \",]+"},
      {"hex", "[0-9a-f]{64}"},
      {"any", ".*"}};
  return k_patterns;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// The regular expression of an expected line, and the names its groups remember.
std::string expression(const std::string& line, const Remembered& remembered, std::vector<std::string>& names) {
  std::string out;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t open = line.find('<', at);
    const std::size_t close = open == std::string::npos ? open : line.find('>', open);
    out += escaped(std::string_view(line).substr(at, open - at));
    if (open == std::string::npos) break;
    const std::string inside = close == std::string::npos ? "" : line.substr(open + 1, close - open - 1);
    const std::size_t colon = inside.find(':');
    const auto pattern = patterns().find(inside.substr(0, colon));
    if (pattern == patterns().end()) {
      out += "<";
      at = open + 1;
      continue;
    }
    const std::string name = colon == std::string::npos ? "" : inside.substr(colon + 1);
    if (name.empty()) out += "(?:" + pattern->second + ")";
    else if (const auto known = remembered.find(name); known != remembered.end()) out += escaped(known->second);
    else out += "(" + pattern->second + ")", names.push_back(name);
    at = close + 1;
  }
  return out;
}

bool line_matches(const std::string& expected, const std::string& actual, Remembered& remembered) {
  std::vector<std::string> names;
  const std::regex regex(expression(expected, remembered, names));
  std::smatch found;
  if (!std::regex_match(actual, found, regex)) return false;
  for (std::size_t i = 0; i < names.size(); ++i) remembered[names[i]] = found[i + 1];
  return true;
}

bool lines_match(const std::vector<std::string>& expected, std::size_t e, const std::vector<std::string>& actual,
                 std::size_t a, Remembered& remembered) {
  if (e == expected.size()) return a == actual.size();
  if (expected[e] == "...") {
    for (std::size_t skip = a; skip <= actual.size(); ++skip) {
      Remembered attempt = remembered;
      if (lines_match(expected, e + 1, actual, skip, attempt)) {
        remembered = attempt;
        return true;
      }
    }
    return false;
  }
  Remembered attempt = remembered;
  if (a == actual.size() || !line_matches(expected[e], actual[a], attempt)) return false;
  if (!lines_match(expected, e + 1, actual, a + 1, attempt)) return false;
  remembered = attempt;
  return true;
}
}  // namespace

std::vector<Command> parse_transcript(const std::string& text) {
  std::vector<Command> commands;
  int number = 0;
  for (const std::string& line : split_lines(text)) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    const std::string rest = line.size() > 2 ? line.substr(2) : "";
    if (line[0] == '$') {
      commands.push_back({number, rest, {}, {}, 0});
      continue;
    }
    if (commands.empty()) throw std::runtime_error("line " + std::to_string(number) + " comes before any command");
    Command& command = commands.back();
    if (line[0] == '+') command.text += "\n" + rest;
    else if (line[0] == '|') command.out.push_back(rest);
    else if (line[0] == '!') command.err.push_back(rest);
    else if (line[0] == '?') command.exit_code = std::stoi(rest);
    else throw std::runtime_error("line " + std::to_string(number) + " begins with none of # $ + | ! ?");
  }
  return commands;
}

std::string compare(const std::vector<std::string>& expected, const std::string& actual, Remembered& remembered) {
  if (lines_match(expected, 0, split_lines(actual), 0, remembered)) return {};
  std::string text = "expected:\n";
  for (const std::string& line : expected) text += "  " + line + "\n";
  text += "but was:\n";
  for (const std::string& line : split_lines(actual)) text += "  " + line + "\n";
  return text;
}

std::string fill_in(std::string text, const Remembered& remembered) {
  for (const auto& [name, value] : remembered) {
    const std::string place = "{" + name + "}";
    for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place, at + value.size()))
      text.replace(at, place.size(), value);
  }
  return text;
}

}  // namespace gridctl::tests
