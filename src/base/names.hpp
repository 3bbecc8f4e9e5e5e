// SPDX-License-Identifier: Apache-2.0
// Maps an enumeration to its words, in its order.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gridctl {

// Works for an enumeration that counts from 0 to `last`.
template <class Enum, Enum last>
class Names {
 public:
  template <class... Words>
  constexpr explicit Names(Words... words) : words_{words...} {
    static_assert(sizeof...(words) == static_cast<std::size_t>(last) + 1, "one word for each value");
  }
  [[nodiscard]] constexpr std::string_view operator()(Enum value) const {
    return words_[value > last ? 0 : static_cast<std::size_t>(value)];
  }
  [[nodiscard]] constexpr std::optional<Enum> find(std::string_view word) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      if (words_[i] == word) return static_cast<Enum>(i);
    return std::nullopt;
  }
  // Errors: usage, "'word' is not WHAT".
  [[nodiscard]] Result<Enum> parse(std::string_view word, std::string_view what) const {
    if (const std::optional<Enum> found = find(word)) return *found;
    return make_error(Code::usage, "'" + std::string(word.substr(0, 40)) + "' is not " + std::string(what));
  }
  // Returns text such as "nvidia, amd, intel".
  [[nodiscard]] std::string choices() const {
    std::string text;
    for (const std::string_view word : words_) text += (text.empty() ? "" : ", ") + std::string(word);
    return text;
  }

 private:
  std::array<std::string_view, static_cast<std::size_t>(last) + 1> words_;
};

}  // namespace gridctl
