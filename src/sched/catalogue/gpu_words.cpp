// SPDX-License-Identifier: Apache-2.0
#include "sched/catalogue/gpu_words.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::sched {

namespace {
bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z'); }
}  // namespace

std::optional<double> gigabytes(std::string_view word) {
  std::size_t digits = 0;
  while (digits < word.size() && digits < 4 && is_digit(word[digits])) ++digits;
  const std::string_view unit = word.substr(digits);
  if (digits == 0 || !is_one_of(unit, {"gb", "g", "gib"})) return std::nullopt;
  return std::stod(std::string(word.substr(0, digits)));
}

std::vector<std::string> words_of(std::string_view name, std::size_t max) {
  std::string low = lower(name.substr(0, max));
  for (std::string_view mark : {"(r)", "(tm)"})
    for (std::size_t at; (at = low.find(mark)) != std::string::npos;) low.replace(at, mark.size(), " ");
  std::vector<std::string> words(1);
  for (char c : low) {
    if (is_alnum(c)) words.back() += c;
    else if (!words.back().empty()) words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  for (std::size_t i = 1; i < words.size(); ++i) {  // "16 GB" is one word
    if (!is_one_of(words[i], {"gb"}) || !std::all_of(words[i - 1].begin(), words[i - 1].end(), is_digit)) continue;
    words[i - 1] += words[i];
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return words;
}

}  // namespace gridctl::sched
