// SPDX-License-Identifier: Apache-2.0
// Each value of a written record, for itself: it is read, it is written again where it stood, and without it something
// else is read.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gridctl::testing {

using Json = nlohmann::json;

inline void each_value(const Json& in, const Json::json_pointer& at, const std::function<void(const Json::json_pointer&)>& visit) {
  if (in.is_object()) {
    for (const auto& [name, value] : in.items()) each_value(value, at / name, visit);
  } else if (in.is_array()) {
    for (std::size_t i = 0; i < in.size(); ++i) each_value(in[i], at / i, visit);
  } else {
    visit(at);
  }
}

// Another one of its kind. A text that is a word or a digest stays one of its form where it can.
inline Json other_than(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_float()) return value.get<double>() * 2 + 1;
  if (value.is_number_unsigned()) return value.get<std::uint64_t>() == UINT64_MAX ? UINT64_MAX - 1 : value.get<std::uint64_t>() + 1;
  if (value.is_number()) return value.get<std::int64_t>() + 1;
  if (!value.is_string()) return value;
  std::string text = value.get<std::string>();
  if (text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos) text[7] = text[7] == '3' ? '4' : '3';
  else text += "q";
  return text;
}

// `again` reads a text and writes what it has read; an error: it refuses that. A word of a table that is not known may
// be read as another one, and a default need not be written. Members of the name `unread` are never believed.
inline void expect_each_value_counts(const std::string& name, const std::string& text,
                                     const std::function<Result<std::string>(const std::string&)>& again,
                                     const std::string& unread = "") {
  const Result<std::string> sound = again(text);
  if (!sound) return void(ADD_FAILURE() << name << ": " << sound.error().message);
  const Json whole = Json::parse(*sound);
  int read = 0;
  each_value(whole, Json::json_pointer(), [&](const Json::json_pointer& at) {
    const Json other = other_than(whole.at(at));
    if (other == whole.at(at) || at.back() == unread) return;  // null
    Json changed = whole;
    changed[at] = other;
    if (const Result<std::string> back = again(changed.dump())) {
      ++read;
      Json written = Json::parse(*back);
      if (!written.contains(at) || (other.is_string() && written[at].is_string() && written[at] != whole[at]))
        written[at] = other;
      EXPECT_EQ(written, changed) << name << ": " << at << " is not written as it was read";
    }
    if (at.back().find_first_not_of("0123456789") == std::string::npos) return;  // of a list
    Json without = whole;
    without.at(at.parent_pointer()).erase(at.back());
    if (const Result<std::string> back = again(without.dump())) {
      EXPECT_NE(Json::parse(*back), whole) << name << ": nothing depends on " << at;
    }
  });
  EXPECT_TRUE(read > 0 || whole.size() <= 1) << name << ": no other value is ever read";
}

namespace detail {
template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
struct Anything {
  template <class T>
  requires(!is_optional<T>) operator T() const;
};
template <class T, class... Given>
constexpr std::size_t arity() {
  if constexpr (requires { T{Given{}..., Anything{}}; }) return arity<T, Given..., Anything>();
  else return sizeof...(Given);
}
}  // namespace detail
// How many members a struct without constructors has.
template <class T>
inline constexpr std::size_t members_of = detail::arity<T>();

}  // namespace gridctl::testing
