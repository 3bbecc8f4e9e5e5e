// SPDX-License-Identifier: Apache-2.0
// Builds JSON from its parts: keys stay in the given order.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "ui/json.hpp"

namespace gridctl::ui {

// Missing values are null, a double has six digits, a moment is text.
template <class T>
[[nodiscard]] std::string json_value(const T& value) {
  if constexpr (std::same_as<T, bool>) return value ? "true" : "false";
  else if constexpr (std::integral<T>) return std::to_string(value);
  else if constexpr (std::same_as<T, double>) return json_number(value);
  else if constexpr (std::same_as<T, WallTime>) return ui::quoted(format_rfc3339(value));
  else if constexpr (requires { value.has_value(); }) return value ? json_value(*value) : "null";
  else return ui::quoted(value);
}

class JsonObject {
 public:
  template <class T>
  JsonObject& operator()(std::string_view key, const T& value) {
    return raw(key, json_value(value));
  }
  // Writes null for an empty text.
  JsonObject& text_or_null(std::string_view key, std::string_view text) {
    return raw(key, text.empty() ? "null" : ui::quoted(text));
  }
  // Adds a value that is already JSON.
  JsonObject& raw(std::string_view key, std::string_view value) {
    text_.append(text_.empty() ? "{" : ",").append(ui::quoted(key)).append(":").append(value);
    return *this;
  }
  [[nodiscard]] std::string text() const { return text_.empty() ? "{}" : text_ + "}"; }

 private:
  std::string text_;
};

// `json` makes the text of one element.
template <class List, class Json>
[[nodiscard]] std::string json_list(const List& list, Json json) {
  std::string text = "[";
  for (const auto& one : list) text.append(text.size() > 1 ? "," : "").append(json(one));
  return text + "]";
}
// Returns ["a","b"].
[[nodiscard]] inline std::string json_list(const std::vector<std::string>& texts) {
  return json_list(texts, json_value<std::string>);
}

}  // namespace gridctl::ui
