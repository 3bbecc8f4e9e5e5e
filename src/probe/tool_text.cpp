// SPDX-License-Identifier: Apache-2.0
#include "probe/tool_text.hpp"

#include <array>
#include <nlohmann/json.hpp>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::probe {

using nlohmann::json;

namespace {
constexpr std::size_t k_text_max = 128;       // bytes of a name or version; longer ones are not names
constexpr std::size_t k_complaint_max = 200;  // bytes of a note's tail: it must fit on a line
constexpr int k_depth_max = 32;               // nesting of the tools' JSON is 6
constexpr int k_candidates_max = 64;          // brackets in log lines before the JSON

constexpr std::array<std::string_view, 12> k_nothing{
    "",          "n/a",           "na",   "none",    "not supported", "unknown",
    "not found", "unknown error", "null", "no data", "not available", "gpu is lost"};

// Returns the end of the bracketed value that begins at `from`, or npos if it never closes.
std::size_t closing(std::string_view text, std::size_t from) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = from; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '{' || c == '[') {
      if (++depth > k_depth_max) return std::string_view::npos;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return i + 1;
    }
  }
  return std::string_view::npos;
}
}  // namespace

bool is_unavailable(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  if (text.size() > 20) return false;
  const std::string word = lower(trim(text));
  for (const std::string_view nothing : k_nothing)
    if (word == nothing) return true;
  return false;
}

std::string available(std::string_view text) {
  if (is_unavailable(text)) return {};
  return std::string(trim(trim(text).substr(0, k_text_max)));
}

std::optional<std::uint64_t> whole_number(std::string_view text) { return parse_number<std::uint64_t>(text); }

std::optional<std::uint64_t> memory_size(std::string_view text, std::string_view default_unit) {
  text = trim(text);
  const std::size_t digits = text.find_first_not_of("0123456789");
  const auto value = whole_number(text.substr(0, digits));
  if (!value) return std::nullopt;
  std::string_view rest = digits == std::string_view::npos ? std::string_view() : text.substr(digits);
  if (!rest.empty() && rest.front() == '.') {
    const std::size_t fraction = rest.find_first_not_of("0123456789", 1);
    rest = fraction == std::string_view::npos ? std::string_view() : rest.substr(fraction);
  }
  std::string unit = lower(trim(rest));
  if (unit.empty()) unit = lower(default_unit);
  constexpr std::array<std::pair<std::string_view, int>, 9> units{
      {{"b", 0}, {"byte", 0}, {"bytes", 0}, {"kb", 10}, {"kib", 10}, {"mb", 20}, {"mib", 20}, {"gb", 30}, {"gib", 30}}};
  for (const auto& [name, shift] : units)
    if (unit == name) {
      if (*value > UINT64_MAX >> (shift + 1)) return std::nullopt;
      return *value << shift;
    }
  return std::nullopt;
}

std::string complaint(std::string_view out, std::string_view err) {
  std::string last;
  for (const std::string_view text : {err, out})
    for (const std::string& line : split_lines(text)) {
      const std::string word = lower(line);
      if (word.find("error") != std::string::npos || word.find("fail") != std::string::npos ||
          word.find("denied") != std::string::npos)
        return std::string(trim(line).substr(0, k_complaint_max));
      if (!trim(line).empty()) last = line;
    }
  return std::string(trim(last).substr(0, k_complaint_max));
}

std::string pci_address(std::string_view text) {
  const std::string address = lower(trim(text));
  const bool plausible = address.size() >= 7 && address.size() <= 16 &&
                         address.find_first_not_of("0123456789abcdef:.") == std::string::npos &&
                         address.find(':') != std::string::npos;
  return plausible ? address : std::string();
}

json find_json(std::string_view text) {
  int candidates = 0;
  std::size_t from = 0;
  while (candidates < k_candidates_max) {
    from = text.find_first_of("{[", from);
    if (from == std::string_view::npos) break;
    ++candidates;
    const std::size_t end = closing(text, from);
    if (end != std::string_view::npos) {
      json value = json::parse(text.substr(from, end - from), nullptr, false);
      // "[]" and "[1]" come from log lines ("[2024…]"), not from these tools.
      if (!value.is_discarded() && (value.is_object() || (value.is_array() && !value.empty() && value[0].is_object())))
        return value;
    }
    ++from;
  }
  return json(json::value_t::discarded);
}

const json& member(const json& object, std::string_view name) {
  static const json k_null;
  if (!object.is_object()) return k_null;
  if (const auto exact = object.find(std::string(name)); exact != object.end()) return *exact;
  const std::string wanted = lower(name);
  for (const auto& [key, value] : object.items())
    if (lower(key) == wanted) return value;
  return k_null;
}

std::string text_of(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
  if (value.is_number_integer()) return std::to_string(value.get<std::int64_t>());
  return {};
}

}  // namespace gridctl::probe
