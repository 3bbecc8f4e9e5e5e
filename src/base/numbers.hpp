// SPDX-License-Identifier: Apache-2.0
// Parses numbers in text, as std::from_chars reads them.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace gridctl {

// Parses the number at the start of the text and removes it from the text; none if there is none or it does not fit.
template <class Number>
[[nodiscard]] std::optional<Number> take_number(std::string_view& text) {
  Number number{};
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}
// Ignores what follows it.
template <class Number>
[[nodiscard]] std::optional<Number> leading_number(std::string_view text) {
  return take_number<Number>(text);
}
// Parses a text that is only a number.
template <class Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text) {
  const std::optional<Number> number = take_number<Number>(text);
  return text.empty() ? number : std::nullopt;
}
// Parses into an existing variable; false leaves it unchanged.
template <class Number>
[[nodiscard]] bool parse_into(std::string_view text, Number& into) {
  const std::optional<Number> number = parse_number<Number>(text);
  if (number) into = *number;
  return number.has_value();
}

}  // namespace gridctl
