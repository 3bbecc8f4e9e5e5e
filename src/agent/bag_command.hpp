// SPDX-License-Identifier: Apache-2.0
// The command of a bag's tasks: with the item in place of {} and its kin, as GNU parallel has them, and as the words
// that are executed. Pure but for the search of programs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/bag_queue.hpp"
#include "wire/bag_spec.hpp"

namespace gridctl::agent {

// A text in which {} {.} {/} {//} {/.} {N} {N.} … {#} {%} stand for parts of a task.
class BagTemplate {
 public:
  BagTemplate(std::string_view text, bool render);
  [[nodiscard]] bool is_constant() const;
  // `quoted`: for a shell, each value as a part of a word.
  [[nodiscard]] std::string fill(const BagTask& task, std::uint32_t slot, bool quoted) const;

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

[[nodiscard]] std::vector<std::string> bag_columns(const std::string& item);
// As GNU parallel quotes: each special byte behind a backslash, so that a value in the user's own quotes looks alike.
[[nodiscard]] std::string bag_quote(std::string_view value);

class BagCommand {
 public:
  // `path`: the job's PATH. `script`: a file with the command.
  BagCommand(const std::string& command, const wire::BagSpec& spec, std::string path, std::string script);
  // The program and its arguments. Commands of plain words need no shell.
  [[nodiscard]] std::vector<std::string> words(const BagTask& task, std::uint32_t slot);
  // A shell runs the command, for a file that only a shell can execute.
  [[nodiscard]] std::vector<std::string> shell_words(const BagTask& task, std::uint32_t slot) const;

 private:
  [[nodiscard]] std::string program_of(const std::string& name);

  BagTemplate text_;
  std::vector<BagTemplate> words_;  // empty: for a shell
  bool verbatim_ = false;           // the items are the command lines
  std::string path_, script_, shell_;
  std::map<std::string, std::string> programs_;
};

// Assignments that a task sees beside its job's: our own, and those of its item. An error names what is wrong with it.
[[nodiscard]] Result<std::vector<std::string>> bag_variables(const BagTask& task, const wire::BagSpec& spec,
                                                             std::uint32_t slot, const std::string& folder);

}  // namespace gridctl::agent
