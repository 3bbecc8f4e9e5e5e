// SPDX-License-Identifier: Apache-2.0
// Applies the rules of .gitignore files as git does. Pure: the caller walks and passes the files' texts.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gridctl::store {

inline constexpr std::size_t k_ignore_file_max = 1u << 20;  // bytes of one ignore file
inline constexpr std::size_t k_ignore_pattern_max = 4096;   // bytes; longer lines are not patterns

// Represents one pattern; matching takes time proportional to pattern times text, whatever stars it has.
class IgnorePattern {
 public:
  // Returns false if the line is empty or a comment.
  [[nodiscard]] static bool parse(std::string_view line, IgnorePattern& into);
  // `relative` is the path below the directory of the ignore file.
  [[nodiscard]] bool matches(std::string_view relative, bool is_directory) const;
  [[nodiscard]] bool negated() const { return negated_; }

 private:
  enum class Op : std::uint8_t { literal, any_one, set, star, deep, directories };
  struct Token {
    Op op = Op::literal;
    char literal = 0;
    std::uint32_t set = 0;
  };
  using Set = std::bitset<256>;
  void compile(std::string_view glob);
  [[nodiscard]] std::size_t compile_set(std::string_view glob, std::size_t at);
  void close_over(std::vector<bool>& states) const;
  [[nodiscard]] bool glob_matches(std::string_view text) const;

  std::vector<Token> tokens_;
  std::vector<Set> sets_;
  bool negated_ = false, directory_only_ = false, anchored_ = false, valid_ = true;
};

// Holds all rules in force during a walk. Later and deeper rules win; files in an ignored directory are not asked
// about.
class IgnoreRules {
 public:
  // `directory` contains the file, relative to the walk's root ("" = root). Call in walk order.
  void add(std::string_view directory, std::string_view text);
  [[nodiscard]] bool ignored(std::string_view path, bool is_directory) const;

 private:
  struct Scope {
    std::string prefix;  // "" or "dir/sub/"
    std::vector<IgnorePattern> patterns;
  };
  std::vector<Scope> scopes_;
};

}  // namespace gridctl::store
