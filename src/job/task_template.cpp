// SPDX-License-Identifier: Apache-2.0
#include "job/task_template.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::job {

namespace {
constexpr std::string_view k_quoted = "\\#?`()[]{}^*<=>~|; \"!$&'\t";
}  // namespace

TaskTemplate::TaskTemplate(std::string_view text, bool render) {
  while (render && !text.empty()) {
    const std::size_t open = text.find('{'), close = text.find('}', open == std::string_view::npos ? 0 : open);
    if (open == std::string_view::npos || close == std::string_view::npos) break;
    auto piece = placeholder(text.substr(open + 1, close - open - 1));
    if (!piece) {
      add(text.substr(0, open + 1));
      text.remove_prefix(open + 1);
      continue;
    }
    add(text.substr(0, open));
    pieces_.push_back(*std::move(piece));
    text.remove_prefix(close + 1);
  }
  add(text);
}

void TaskTemplate::add(std::string_view literal) {
  if (literal.empty()) return;
  if (pieces_.empty() || pieces_.back().part != Part::literal) pieces_.emplace_back();
  pieces_.back().text += literal;
}

std::optional<TaskTemplate::Piece> TaskTemplate::placeholder(std::string_view name) {
  if (name == "#") return Piece{Part::number, {}, 0, {}};
  if (name == "%") return Piece{Part::slot, {}, 0, {}};
  Piece piece{Part::item, {}, 0, {}};
  if (!name.empty() && is_digit(name[0])) {
    const auto column = take_number<std::size_t>(name);
    if (!column || *column == 0) return std::nullopt;
    piece.column = *column;
  }
  if (name == ".") piece.cut = Cut::no_extension;
  else if (name == "/") piece.cut = Cut::base;
  else if (name == "//") piece.cut = Cut::folder;
  else if (name == "/.") piece.cut = Cut::bare;
  else if (!name.empty()) return std::nullopt;
  return piece;
}

bool TaskTemplate::is_constant() const {
  return std::ranges::all_of(pieces_, [](const Piece& piece) { return piece.part == Part::literal; });
}

std::string TaskTemplate::cut_value(const std::string& value, Cut cut) {
  const std::size_t slash = value.rfind('/');
  const std::size_t base = slash == std::string::npos ? 0 : slash + 1;
  const std::size_t dot = value.rfind('.');
  const bool has_extension = dot != std::string::npos && dot >= base && dot + 1 < value.size();
  const std::size_t bare = has_extension ? dot : value.size();
  switch (cut) {
    case Cut::none: return value;
    case Cut::no_extension: return value.substr(0, bare);
    case Cut::base: return value.substr(base);
    case Cut::folder: return slash == std::string::npos ? "." : slash == 0 ? "/" : value.substr(0, slash);
    case Cut::bare: return value.substr(base, bare - base);
  }
  return value;
}

std::string TaskTemplate::fill(std::uint64_t index, const std::string& item, std::uint32_t slot, bool quoted) const {
  const std::vector<std::string> columns = task_columns(item);
  std::string text;
  const auto value = [&](const std::string& column, Cut cut) {
    const std::string part = cut_value(column, cut);
    text += quoted ? parallel_quote(part) : part;
  };
  for (const Piece& piece : pieces_) {
    switch (piece.part) {
      case Part::literal: text += piece.text; break;
      case Part::number: text += std::to_string(index + 1); break;
      case Part::slot: text += std::to_string(slot); break;
      case Part::item:
        if (piece.column > 0) {
          if (piece.column <= columns.size()) value(columns[piece.column - 1], piece.cut);
          break;
        }
        for (std::size_t i = 0; i < columns.size(); ++i) {
          if (i > 0) text += ' ';
          value(columns[i], piece.cut);
        }
        break;
    }
  }
  return text;
}

std::vector<std::string> task_columns(const std::string& item) { return split(item, k_column_separator); }

std::string parallel_quote(std::string_view value) {
  if (value.empty()) return "''";
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      text += "'\n'";
      continue;
    }
    if (byte < ' ' || byte >= 0x7f || k_quoted.find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace gridctl::job
