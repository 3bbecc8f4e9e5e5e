// SPDX-License-Identifier: Apache-2.0
// Formats a table of text: columns aligned by display width, fitted to the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "ui/style.hpp"

namespace gridctl::ui {

struct Column {
  std::string title;
  bool right = false;         // numbers
  std::size_t width_min = 6;  // not truncated below this
  bool shrinks = false;       // gives way first when the terminal is narrow
  bool whole = false;         // never cut
  int drop = 0;               // left out when there is no room; the highest first, 0 never
};

class Table {
 public:
  explicit Table(std::vector<Column> columns);
  // Adds a row. Cells are sanitised and put on one line; missing cells are empty.
  void add(std::vector<std::string> cells, std::vector<Paint> paints = {});
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  // Returns complete lines with their newlines. `columns_max` 0: nothing is cut, for pipes.
  [[nodiscard]] std::string render(std::size_t columns_max, Style style) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<Paint> paints;
  };
  // Returns the table without optional columns, until the rest fits at the minimum width of the columns that shrink.
  [[nodiscard]] Table with_room(std::size_t columns_max) const;
  [[nodiscard]] std::vector<std::size_t> widths(std::size_t columns_max) const;
  std::vector<Column> columns_;
  std::vector<std::size_t> natural_;  // width of each column when nothing is cut
  std::vector<Row> rows_;
};

// Formats "key   value" lines, keys padded to the longest; values sanitised.
class Facts {
 public:
  void add(std::string key, std::string value);  // an empty value is left out
  [[nodiscard]] std::string render(Style style) const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

}  // namespace gridctl::ui
