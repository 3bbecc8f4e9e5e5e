// SPDX-License-Identifier: Apache-2.0
// Writes units of systemd as text.
#pragma once

#include <string>

namespace gridctl::os {

// Escapes a word of ExecStart or Environment: systemd expands '%' and '$' in it, and splits at spaces.
[[nodiscard]] inline std::string systemd_word(const std::string& word) {
  std::string text = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '%' || c == '$') text += c;
    text += c;
  }
  return text + "\"";
}

}  // namespace gridctl::os
