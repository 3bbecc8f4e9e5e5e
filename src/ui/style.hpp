// SPDX-License-Identifier: Apache-2.0
// Adds colour, only if it is wanted.
#pragma once

#include <string>
#include <string_view>

namespace gridctl::ui {

enum class Paint { none, bold, dim, red, green, yellow, blue };

struct Style {
  bool color = false;
  [[nodiscard]] std::string operator()(Paint paint, std::string_view text) const;
};

}  // namespace gridctl::ui
