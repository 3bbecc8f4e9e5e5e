// SPDX-License-Identifier: Apache-2.0
#include "ui/style.hpp"

namespace gridctl::ui {

namespace {
std::string_view sequence(Paint paint) {
  switch (paint) {
    case Paint::none: return "";
    case Paint::bold: return "\033[1m";
    case Paint::dim: return "\033[2m";
    case Paint::red: return "\033[31m";
    case Paint::green: return "\033[32m";
    case Paint::yellow: return "\033[33m";
    case Paint::blue: return "\033[34m";
  }
  return "";
}
}  // namespace

std::string Style::operator()(Paint paint, std::string_view text) const {
  if (!color || paint == Paint::none || text.empty()) return std::string(text);
  return std::string(sequence(paint)) + std::string(text) + "\033[0m";
}

}  // namespace gridctl::ui
