// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_shell.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"

namespace gridctl::agent {

namespace {

// Characters that have the same meaning in every shell, unless they form one of k_bash_signs.
constexpr std::string_view k_signs = "_./,:=+@%-^ \t\n;|&<>\"'$*?[]()#{}";
constexpr std::array<std::string_view, 20> k_bash_signs{"[[", "[ -v", "((", "<(", ">(", "<<", "&>", ">&", "|&", "$'", "$\"",
                                                        "+=", "==", "=(", "[^", "**", "..", "{,", ",}", "()"};
// Lists words that only bash knows, or interprets differently from other shells.
constexpr std::array<std::string_view, 41> k_bash_words{
    "function", "source", "declare", "typeset", "local",  "let",      "pushd",   "popd",    "dirs",  "shopt", "mapfile",
    "select",   "time",   "coproc",  "enable",  "caller", "builtin",  "compgen", "disown",  "help",  "type",  "readarray",
    "ulimit",   "trap",   "kill",    "read",    "printf", "set",      "export",  "exec",    "wait",  "alias", ".",
    "unset",    "hash",   "history", "suspend", "logout", "complete", "test",    "getopts"};
// Lists variables that have the same meaning everywhere and contain no backslash, which shells treat differently in
// `echo`.
constexpr std::array<std::string_view, 5> k_plain_variables{"GRIDCTL_TASK_INDEX", "GRIDCTL_TASK_NUMBER",
                                                            "GRIDCTL_TASK_SLOT", "GRIDCTL_TASK_COUNT",
                                                            "SLURM_ARRAY_TASK_ID"};

constexpr std::string_view k_echo = "echo";  // with options, each shell has its own

bool is_listed(const auto& list, std::string_view word) { return std::ranges::find(list, word) != list.end(); }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// Requires that every $ is followed by a plain variable, with or without braces.
bool has_plain_variables(std::string_view text) {
  for (std::size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$')) {
    text.remove_prefix(at + 1);
    const bool braces = text.starts_with('{');
    if (braces) text.remove_prefix(1);
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, is_word) - text.begin());
    if (!is_listed(k_plain_variables, text.substr(0, end)) || (braces && !text.substr(end).starts_with('}'))) return false;
    text.remove_prefix(end + (braces ? 1 : 0));
  }
  return text.find('{') == std::string_view::npos;
}

}  // namespace

bool is_plain_shell(std::string_view text) {
  if (!std::ranges::all_of(text, [](char c) { return is_word(c) || k_signs.find(c) != std::string_view::npos; })) return false;
  if (std::ranges::any_of(k_bash_signs, [&](std::string_view sign) {
        // Every shell understands "2>&1".
        for (std::size_t at = text.find(sign); at != std::string_view::npos; at = text.find(sign, at + 1))
          if (sign != ">&" || at + 2 == text.size() || !is_digit(text[at + 2])) return true;
        return false;
      }))
    return false;
  std::string words(text);
  std::ranges::replace_if(words, [](char c) { return !is_word(c) && c != '.' && c != '-' && c != '/'; }, ' ');
  const auto list = split(words, ' ');
  if (std::ranges::any_of(list, [](const std::string& word) { return is_listed(k_bash_words, word); })) return false;
  for (std::size_t i = 0; i + 1 < list.size(); ++i)
    if (list[i] == k_echo && list[i + 1].starts_with('-')) return false;
  return has_plain_variables(text);
}

}  // namespace gridctl::agent
