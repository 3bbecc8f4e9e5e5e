// SPDX-License-Identifier: Apache-2.0
// Fills the texts of a bag with the item in place of {} and similar marks, as in GNU parallel. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::job {

inline constexpr char k_column_separator = '\x1f';

// Represents a text in which {} {.} {/} {//} {/.} {N} {N.} … {#} {%} stand for parts of a task.
class TaskTemplate {
 public:
  TaskTemplate(std::string_view text, bool render);
  [[nodiscard]] bool is_constant() const;
  // `quoted`: for a shell, with each value as a part of a word.
  [[nodiscard]] std::string fill(std::uint64_t index, const std::string& item, std::uint32_t slot, bool quoted) const;

 private:
  enum class Part : std::uint8_t { literal, item, number, slot };
  enum class Cut : std::uint8_t { none, no_extension, base, folder, bare };
  struct Piece {
    Part part = Part::literal;
    Cut cut = Cut::none;
    std::size_t column = 0;  // from 1; 0: all
    std::string text;
  };
  [[nodiscard]] static std::optional<Piece> placeholder(std::string_view name);
  [[nodiscard]] static std::string cut_value(const std::string& value, Cut cut);
  void add(std::string_view literal);

  std::vector<Piece> pieces_;
};

[[nodiscard]] std::vector<std::string> task_columns(const std::string& item);
// Quotes as GNU parallel does: a backslash before each special byte, so that a value inside the user's own quotes looks
// the same.
[[nodiscard]] std::string parallel_quote(std::string_view value);

}  // namespace gridctl::job
