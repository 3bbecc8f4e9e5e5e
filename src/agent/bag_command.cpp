// SPDX-License-Identifier: Apache-2.0
#include "agent/bag_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::agent {

namespace {

constexpr std::size_t k_programs_max = 256;  // whose place is remembered

constexpr std::string_view k_plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:=+@%^-";
constexpr std::string_view k_quoted = "\\#?`()[]{}^*<=>~|; \"!$&'\t";

// Words that a shell takes for its own, but for `true` and `false`, which are programs that do as much.
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

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && !is_digit(name[0]) &&
         std::ranges::all_of(name, [](char c) { return is_digit(c) || is_letter(c) || c == '_'; });
}

const char* task_shell() {
  for (const char* bash : {"/bin/bash", "/usr/bin/bash"})
    if (::access(bash, X_OK) == 0) return bash;
  return "/bin/sh";
}

}  // namespace

BagTemplate::BagTemplate(std::string_view text, bool render) {
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

void BagTemplate::add(std::string_view literal) {
  if (literal.empty()) return;
  if (pieces_.empty() || pieces_.back().part != Part::literal) pieces_.emplace_back();
  pieces_.back().text += literal;
}

std::optional<BagTemplate::Piece> BagTemplate::placeholder(std::string_view name) {
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

bool BagTemplate::is_constant() const {
  return std::ranges::all_of(pieces_, [](const Piece& piece) { return piece.part == Part::literal; });
}

std::string BagTemplate::cut_value(const std::string& value, Cut cut) {
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

std::string BagTemplate::fill(const BagTask& task, std::uint32_t slot, bool quoted) const {
  const std::vector<std::string> columns = bag_columns(task.item.value_or(""));
  std::string text;
  const auto value = [&](const std::string& column, Cut cut) {
    const std::string part = cut_value(column, cut);
    text += quoted ? bag_quote(part) : part;
  };
  for (const Piece& piece : pieces_) {
    switch (piece.part) {
      case Part::literal: text += piece.text; break;
      case Part::number: text += std::to_string(task.index + 1); break;
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

std::vector<std::string> bag_columns(const std::string& item) { return split(item, wire::k_column_separator); }

std::string bag_quote(std::string_view value) {
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

BagCommand::BagCommand(const std::string& command, const wire::BagSpec& spec, std::string path, std::string script)
    : text_(trim(command), spec.render), path_(std::move(path)), script_(std::move(script)), shell_(task_shell()) {
  const std::string_view text = trim(command);
  verbatim_ = spec.render && text == "{}";
  if (verbatim_) return;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const BagTemplate parts(word, spec.render);
    // With marks in it for values that look like nothing else, a word is plain when all else in it is.
    const std::string look = parts.fill({0, 0, std::string("x")}, 1, false);
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

// Empty: a shell shall say that there is none.
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
  for (const BagTemplate& word : words_) words.push_back(word.fill(task, slot, false));
  const std::string program = program_of(words[0]);
  if (program.empty()) return shell_words(task, slot);
  words.insert(words.begin(), program);  // what is executed, and then as what it is called
  return words;
}

std::vector<std::string> BagCommand::shell_words(const BagTask& task, std::uint32_t slot) const {
  if (verbatim_) return {shell_, shell_, "-c", task.item.value_or("")};
  if (text_.is_constant()) return {shell_, shell_, script_};
  return {shell_, shell_, "-c", text_.fill(task, slot, true)};
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
      const std::vector<std::string> columns = bag_columns(*task.item);
      set("GRIDCTL_TASK_ITEM", join(columns, " "));
      for (std::size_t i = 0; i < columns.size(); ++i) set("GRIDCTL_TASK_ITEM_" + std::to_string(i + 1), columns[i]);
      break;
    }
    case wire::BagItems::variables:
      set("GRIDCTL_TASK_ITEM", *task.item);
      for (const std::string& line : split(*task.item, '\n')) {
        if (line.empty()) continue;
        const std::string name = line.substr(0, line.find('='));
        if (name.size() == line.size() || !is_name(name))
          return make_error(Code::refused, "the item of task " + index + " is no list of NAME=VALUE");
        std::erase_if(variables, [&](const std::string& other) { return other.starts_with(name + "="); });
        variables.push_back(line);
      }
      break;
  }
  return variables;
}

}  // namespace gridctl::agent
