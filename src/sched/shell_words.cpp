// SPDX-License-Identifier: Apache-2.0
#include "sched/shell_words.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"

namespace gridctl::sched {

namespace {
using Words = std::vector<std::string>;

// Programs and shell words that only run what follows them.
constexpr std::array<std::string_view, 14> k_wrappers{"exec",   "nohup", "time", "env",  "sudo", "command", "stdbuf",
                                                      "setsid", "then",  "do",   "else", "nice", "timeout", "numactl"};
// Runners, as in "uv run python x.py".
constexpr std::array<std::string_view, 4> k_runners{"uv", "poetry", "pipenv", "conda"};

bool is_separator(char c) { return c == ';' || c == '&' || c == '|' || c == '\n' || c == '(' || c == ')' || c == '`'; }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// Cuts text into commands of words, as a shell would, without expanding anything.
class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  std::vector<Words> cut() {
    while (at_ < text_.size()) step();
    end_command();
    return std::move(commands_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\') {
      const bool continues = at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
      if (!continues && at_ + 1 < text_.size()) add(text_[at_ + 1]);
      at_ += 2;
    } else if (c == '\'' || c == '"') {
      quoted(c);
    } else if (c == '#' && !in_word_) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (is_separator(c)) {
      end_command();
      ++at_;
    } else if (is_blank(c)) {
      end_word();
      ++at_;
    } else {
      add(c);
      ++at_;
    }
  }
  void quoted(char quote) {
    in_word_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word_ += text_[at_];
    }
    ++at_;
  }
  void add(char c) {
    in_word_ = true;
    word_ += c;
  }
  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }
  void end_command() {
    end_word();
    if (!words_.empty()) commands_.push_back(std::move(words_));
    words_.clear();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool in_word_ = false;
  std::string word_;
  Words words_;
  std::vector<Words> commands_;
};

bool is_assignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string_view::npos || is_digit(word[0]))
    return false;
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

std::string base_name(std::string_view word) { return std::string(word.substr(word.find_last_of('/') + 1)); }

bool is_interpreter(std::string_view program) {
  return program.starts_with("python") || is_one_of(program, {"pypy3", "ipython", "Rscript", "julia"});
}
bool is_shell(std::string_view program) { return is_one_of(program, {"sh", "bash", "zsh"}); }

void take_variables(Words& words, ShellCommand& into) {
  std::size_t count = 0;
  while (count < words.size() && is_assignment(words[count])) {
    const std::size_t equals = words[count].find('=');
    into.variables.emplace_back(words[count].substr(0, equals), words[count].substr(equals + 1));
    ++count;
  }
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(count));
}

void drop(Words& words, std::size_t count) {
  words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min(count, words.size())));
}

// Drops options of a wrapper, and numbers: "nice -n 10", "timeout -k 5 1h".
void drop_options(Words& words) {
  while (!words.empty() && !words[0].empty() &&
         (words[0][0] == '-' || is_digit(words[0][0])))
    drop(words, 1);
}

// Removes one program that only runs what follows it; returns false if there is none.
bool unwrap(Words& words) {
  if (words.empty()) return false;
  const std::string first = base_name(words[0]);
  if (std::ranges::find(k_wrappers, first) != k_wrappers.end()) {
    drop(words, 1);
    drop_options(words);
    return true;
  }
  const bool runs = words.size() > 2 && is_one_of(words[1], {"run"}) && std::ranges::find(k_runners, first) != k_runners.end();
  if (!runs) return false;
  drop(words, 2);
  drop_options(words);
  return true;
}

// Reads "python -u -m MODULE …" or "python SCRIPT …".
void enter_interpreter(Words& words) {
  std::size_t at = 1;
  while (at < words.size() && words[at].starts_with('-') && !is_one_of(words[at], {"-m", "-c"})) ++at;
  if (at < words.size() && is_one_of(words[at], {"-m"})) ++at;
  else if (at < words.size() && is_one_of(words[at], {"-c"})) at = words.size();  // the text of a program says nothing by words
  if (at < words.size()) drop(words, at);
}

void collect(const std::vector<Words>& cut, bool may_enter, std::vector<ShellCommand>& into);

void add_command(Words words, bool may_enter, std::vector<ShellCommand>& into) {
  ShellCommand command;
  do take_variables(words, command);
  while (unwrap(words));
  if (!words.empty() && is_one_of(words[0], {"export"})) {
    drop(words, 1);
    take_variables(words, command);
  }
  if (words.empty()) {
    if (!command.variables.empty()) into.push_back(std::move(command));
    return;
  }
  if (is_shell(base_name(words[0])) && words.size() > 1) {
    const bool text = words[1].starts_with('-') && words[1].ends_with('c') && words.size() > 2;
    if (text && may_enter) return collect(Cutter(words[2]).cut(), false, into);
    if (!words[1].starts_with('-')) drop(words, 1);  // a script
  }
  if (is_interpreter(base_name(words[0]))) enter_interpreter(words);
  command.program = base_name(words[0]);
  command.arguments.assign(words.begin() + 1, words.end());
  if (!command.program.empty() || !command.variables.empty()) into.push_back(std::move(command));
}

void collect(const std::vector<Words>& cut, bool may_enter, std::vector<ShellCommand>& into) {
  for (const Words& words : cut) add_command(words, may_enter, into);
}
}  // namespace

std::vector<ShellCommand> shell_commands(std::string_view text) {
  std::vector<ShellCommand> commands;
  collect(Cutter(text).cut(), true, commands);
  return commands;
}

std::vector<std::string> name_parts(std::string_view word) {
  word = word.substr(word.find_last_of('/') + 1);
  word = word.substr(0, word.find('='));
  std::vector<std::string> parts{""};
  for (char c : lower(word)) {
    if (std::isalnum(static_cast<unsigned char>(c))) parts.back() += c;
    else if (!parts.back().empty()) parts.emplace_back();
  }
  if (parts.back().empty()) parts.pop_back();
  return parts;
}

}  // namespace gridctl::sched
