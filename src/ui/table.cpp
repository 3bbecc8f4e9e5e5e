// SPDX-License-Identifier: Apache-2.0
#include "ui/table.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ui/width.hpp"

namespace gridctl::ui {

namespace {
constexpr std::size_t k_gap = 2;          // spaces between two columns
constexpr std::size_t k_cell_max = 4096;  // bytes

void put_on_one_line(std::string& text) {
  if (text.size() <= k_cell_max && is_plain(text)) return;
  text = sanitize(text, k_cell_max);
  std::ranges::replace(text, '\t', ' ');
}
}  // namespace

Table::Table(std::vector<Column> columns) : columns_(std::move(columns)) {
  for (const Column& column : columns_) natural_.push_back(display_width(column.title));
}

void Table::add(std::vector<std::string> cells, std::vector<Paint> paints) {
  cells.resize(columns_.size());
  paints.resize(columns_.size(), Paint::none);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    put_on_one_line(cells[i]);
    natural_[i] = std::max(natural_[i], display_width(cells[i]));
  }
  rows_.push_back({std::move(cells), std::move(paints)});
}

Table Table::with_room(std::size_t columns_max) const {
  Table table = *this;
  std::vector<std::size_t> least;  // of each column that is left
  for (std::size_t i = 0; i < columns_.size(); ++i)
    least.push_back(columns_[i].shrinks ? std::min(natural_[i], columns_[i].width_min) : natural_[i]);
  for (;;) {
    std::size_t total = table.columns_.empty() ? 0 : (table.columns_.size() - 1) * k_gap;
    for (const std::size_t width : least) total += width;
    const auto first =
        std::ranges::max_element(table.columns_, [](const Column& a, const Column& b) { return a.drop < b.drop; });
    if (total <= columns_max || first == table.columns_.end() || first->drop == 0) return table;
    const auto at = first - table.columns_.begin();
    table.columns_.erase(first);
    least.erase(least.begin() + at);
    table.natural_.erase(table.natural_.begin() + at);
    for (Row& row : table.rows_) {
      row.cells.erase(row.cells.begin() + at);
      row.paints.erase(row.paints.begin() + at);
    }
  }
}

std::vector<std::size_t> Table::widths(std::size_t columns_max) const {
  std::vector<std::size_t> widths = natural_;
  std::size_t total = columns_.empty() ? 0 : (columns_.size() - 1) * k_gap;
  for (const std::size_t width : widths) total += width;
  if (columns_max == 0) return widths;
  for (const bool shrinking_ones : {true, false}) {  // first those that said they shrink, the widest of them first
    while (total > columns_max) {
      std::size_t widest = columns_.size();
      for (std::size_t i = 0; i < columns_.size(); ++i)
        if (!columns_[i].whole && (columns_[i].shrinks || !shrinking_ones) && widths[i] > columns_[i].width_min &&
            (widest == columns_.size() || widths[i] > widths[widest]))
          widest = i;
      if (widest == columns_.size()) break;
      --widths[widest], --total;
    }
  }
  return widths;
}

std::string Table::render(std::size_t columns_max, Style style) const {
  if (columns_max > 0)
    if (const Table fitting = with_room(columns_max); fitting.columns_.size() < columns_.size())
      return fitting.render(columns_max, style);
  const std::vector<std::size_t> width = widths(columns_max);
  std::string text;
  const auto put = [&](const std::vector<std::string>& cells, const std::vector<Paint>& paints) {
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (width[i] == 0) continue;
      const bool last = i + 1 == cells.size();
      std::string cut;
      std::string_view shown = cells[i];
      std::size_t used = display_width(shown);
      if (columns_max != 0 && used > width[i]) {
        cut = truncate(shown, width[i]);
        shown = cut, used = display_width(shown);
      }
      const std::size_t fill = width[i] > used ? width[i] - used : 0;
      if (columns_[i].right) text.append(fill, ' ');
      if (style.color) text += style(paints[i], shown);
      else text += shown;
      if (!last) text.append((columns_[i].right ? 0 : fill) + k_gap, ' ');
    }
    while (!text.empty() && text.back() == ' ') text.pop_back();
    text += '\n';
  };
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  put(titles, std::vector<Paint>(columns_.size(), Paint::dim));
  for (const Row& row : rows_) put(row.cells, row.paints);
  return text;
}

void Facts::add(std::string key, std::string value) {
  if (!value.empty()) facts_.emplace_back(std::move(key), sanitize(value));
}

std::string Facts::render(Style style) const {
  std::size_t width = 0;
  for (const auto& [key, value] : facts_) width = std::max(width, display_width(key));
  std::string text;
  for (const auto& [key, value] : facts_) {
    text += style(Paint::dim, pad_right(key, width)) + "  " + value + '\n';
  }
  return text;
}

}  // namespace gridctl::ui
