// SPDX-License-Identifier: Apache-2.0
// Formats numbers in text with printf's notation.
#pragma once

#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <string>

namespace gridctl {

[[nodiscard, gnu::format(printf, 1, 2)]] inline std::string formatted(const char* format, ...) {
  std::array<char, 128> text;
  std::va_list values, again;
  va_start(values, format);
  va_copy(again, values);
  const auto size = static_cast<std::size_t>(std::vsnprintf(text.data(), text.size(), format, values));
  std::string out(text.data(), size < text.size() ? size : 0);
  if (size >= text.size()) {
    out.resize(size);
    std::vsnprintf(out.data(), size + 1, format, again);
  }
  va_end(again);
  va_end(values);
  return out;
}

}  // namespace gridctl
