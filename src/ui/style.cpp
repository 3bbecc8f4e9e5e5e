// SPDX-License-Identifier: Apache-2.0
#include "ui/style.hpp"

#include "base/names.hpp"

namespace gridctl::ui {

namespace {
constexpr Names<Paint, Paint::blue> sequence{"", "\033[1m", "\033[2m", "\033[31m", "\033[32m", "\033[33m", "\033[34m"};
}  // namespace

std::string Style::operator()(Paint paint, std::string_view text) const {
  if (!color || paint == Paint::none || text.empty()) return std::string(text);
  return std::string(sequence(paint)) + std::string(text) + "\033[0m";
}

}  // namespace gridctl::ui
