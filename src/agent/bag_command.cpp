// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_programs_max = 256;  // whose place is remembered

constexpr std::string_view k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+@%^-";

// Lists words with a special meaning in a shell, except `true` and `false`, which also exist as programs.
constexpr std::array<std::string_view, 78> k_shell_words{
    ".",       ":",       "[",         "alias",    "bg",       "bind",    "break",   "builtin", "caller",  "case",
    "cd",      "command", "compgen",   "complete", "continue", "coproc",  "declare", "dirs",    "disown",  "do",
    "done",    "echo",    "elif",      "else",     "enable",   "esac",    "eval",    "exec",    "exit",    "export",
    "fc",      "fg",      "fi",        "for",      "function", "getopts", "hash",    "help",    "history", "if",
    "in",      "jobs",    "kill",      "let",      "local",    "logout",  "mapfile", "popd",    "printf",  "pushd",
    "pwd",     "read",    "readarray", "readonly", "return",   "select",  "set",     "shift",   "shopt",   "source",
    "suspend", "test",    "then",      "time",     "times",    "trap",    "type",    "typeset", "ulimit",  "umask",
    "unalias", "unset",   "until",     "wait",     "while",    "compopt", "chdir",   "{"};

bool is_shell_word(std::string_view word) { return std::ranges::find(k_shell_words, word) != k_shell_words.end(); }

const std::string k_plain_shell = "/bin/sh";

const char* task_shell() {
  for (const char* bash : {"/bin/bash", "/usr/bin/bash"})
    if (::access(bash, X_OK) == 0) return bash;
  return "/bin/sh";
}

}  // namespace

BagCommand::BagCommand(const std::string& command, const wire::BagSpec& spec, std::string path, std::string script)
    : text_(trim(command), spec.render), path_(std::move(path)), script_(std::move(script)), shell_(task_shell()) {
  const std::string_view text = trim(command);
  verbatim_ = spec.render && text == "{}";
  is_plain_ = text_.is_constant() && is_plain_shell(text);
  if (verbatim_) return;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const job::TaskTemplate parts(word, spec.render);
    // Values are replaced by marks that look like nothing else; a word is plain if everything else in it is.
    const std::string look = parts.fill(0, "x", 1, false);
    const bool several = spec.items == wire::BagItems::columns && !parts.is_constant();  // {} may be several words
    const bool first_bad =
        words_.empty() && (!parts.is_constant() || word.find('=') != std::string::npos || is_shell_word(word));
    if (look.find_first_not_of(k_plain) != std::string::npos || several || first_bad) {
      words_.clear();
      return;
    }
    words_.push_back(parts);
  }
}

// Returns empty if there is no such program: then a shell reports that.
std::string BagCommand::program_of(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  if (const auto known = programs_.find(name); known != programs_.end()) return known->second;
  std::string found;
  for (const std::string& folder : split(path_, ':')) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), X_OK) != 0) continue;
    found = candidate;
    break;
  }
  if (!found.empty() && programs_.size() < k_programs_max) programs_[name] = found;
  return found;
}

std::vector<std::string> BagCommand::words(const BagTask& task, std::uint32_t slot) {
  if (words_.empty()) return shell_words(task, slot);
  std::vector<std::string> words;
  for (const job::TaskTemplate& word : words_) words.push_back(word.fill(task.index, task.item.value_or(""), slot, false));
  const std::string program = program_of(words[0]);
  if (program.empty()) return shell_words(task, slot);
  words.insert(words.begin(), program);  // what is executed, and then as what it is called
  return words;
}

std::vector<std::string> BagCommand::shell_words(const BagTask& task, std::uint32_t slot) const {
  if (!verbatim_ && text_.is_constant()) {
    const std::string& shell = is_plain_ ? k_plain_shell : shell_;
    return {shell, shell, script_};
  }
  const std::string item = task.item.value_or("");
  const std::string text = verbatim_ ? item : text_.fill(task.index, item, slot, true);
  const std::string& shell = is_plain_shell(text) ? k_plain_shell : shell_;
  return {shell, shell, "-c", text};
}

Result<std::vector<std::string>> bag_variables(const BagTask& task, const wire::BagSpec& spec, std::uint32_t slot,
                                               const std::string& folder) {
  const std::string index = std::to_string(task.index);
  const auto array = static_cast<std::int64_t>(task.index) * spec.array_step + spec.array_first;
  std::vector<std::string> variables{"GRIDCTL_TASK_INDEX=" + index,
                                     "GRIDCTL_TASK_NUMBER=" + std::to_string(task.index + 1),
                                     "GRIDCTL_TASK_SLOT=" + std::to_string(slot),
                                     "SLURM_ARRAY_TASK_ID=" + (spec.array_step != 0 ? std::to_string(array) : index)};
  const auto set = [&](const std::string& name, const std::string& value) { variables.push_back(name + "=" + value); };
  if (spec.count > 0) set("GRIDCTL_TASK_COUNT", std::to_string(spec.count));
  if (!folder.empty()) {
    set("GRIDCTL_TASK_DIR", folder);
    set("GRIDCTL_CKPT_DIR", folder);
  }
  if (!task.item) return variables;
  switch (spec.items) {
    case wire::BagItems::text: set("GRIDCTL_TASK_ITEM", *task.item); break;
    case wire::BagItems::columns: {
      const std::vector<std::string> columns = job::task_columns(*task.item);
      set("GRIDCTL_TASK_ITEM", join(columns, " "));
      for (std::size_t i = 0; i < columns.size(); ++i) set("GRIDCTL_TASK_ITEM_" + std::to_string(i + 1), columns[i]);
      break;
    }
    case wire::BagItems::variables:
      set("GRIDCTL_TASK_ITEM", *task.item);
      for (const std::string& line : split(*task.item, '\n')) {
        if (line.empty()) continue;
        const std::string name = line.substr(0, line.find('='));
        if (name.size() == line.size() || !is_variable_name(name))
          return make_error(Code::refused, "the item of task " + index + " is not a list of NAME=VALUE");
        std::erase_if(variables, [&](const std::string& other) { return other.starts_with(name + "="); });
        variables.push_back(line);
      }
      break;
  }
  return variables;
}

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
