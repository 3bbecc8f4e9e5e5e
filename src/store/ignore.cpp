// SPDX-License-Identifier: Apache-2.0
#include "store/ignore.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "base/text.hpp"

namespace gridctl::store {
namespace {

struct CharacterClass {
  std::string_view name;
  int (*test)(int);
};
constexpr std::array k_classes{CharacterClass{"alnum", [](int c) { return std::isalnum(c); }},
                               CharacterClass{"alpha", [](int c) { return std::isalpha(c); }},
                               CharacterClass{"blank", [](int c) { return std::isblank(c); }},
                               CharacterClass{"cntrl", [](int c) { return std::iscntrl(c); }},
                               CharacterClass{"digit", [](int c) { return std::isdigit(c); }},
                               CharacterClass{"graph", [](int c) { return std::isgraph(c); }},
                               CharacterClass{"lower", [](int c) { return std::islower(c); }},
                               CharacterClass{"print", [](int c) { return std::isprint(c); }},
                               CharacterClass{"punct", [](int c) { return std::ispunct(c); }},
                               CharacterClass{"space", [](int c) { return std::isspace(c); }},
                               CharacterClass{"upper", [](int c) { return std::isupper(c); }},
                               CharacterClass{"xdigit", [](int c) { return std::isxdigit(c); }}};

// Trailing spaces do not count unless a backslash quotes them.
std::string_view without_trailing_spaces(std::string_view line) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size()) {
      ++i;
      end = i + 1;
    } else if (line[i] != ' ') {
      end = i + 1;
    }
  }
  return line.substr(0, end);
}

}  // namespace

bool IgnorePattern::parse(std::string_view line, IgnorePattern& into) {
  into = IgnorePattern();
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with('#')) return false;
  line = without_trailing_spaces(line);
  if (line.starts_with('!')) {
    into.negated_ = true;
    line.remove_prefix(1);
  }
  if (line.empty() || line.size() > k_ignore_pattern_max) return false;
  if (line.ends_with('/')) {
    into.directory_only_ = true;
    line.remove_suffix(1);
  }
  into.anchored_ = line.find('/') != std::string_view::npos;
  if (line.starts_with('/')) line.remove_prefix(1);
  if (line.empty()) return false;
  into.compile(line);
  return true;
}

// Two or more stars have a special meaning only as a complete component of an anchored pattern.
void IgnorePattern::compile(std::string_view glob) {
  for (std::size_t i = 0; i < glob.size();) {
    const bool component_start = i == 0 || glob[i - 1] == '/';
    if (glob[i] == '*') {
      std::size_t end = i;
      while (end < glob.size() && glob[end] == '*') ++end;
      const bool deep = end - i >= 2 && component_start && anchored_;
      if (deep && end < glob.size() && glob[end] == '/') {
        tokens_.push_back({Op::directories});
        i = end + 1;
      } else if (deep && end == glob.size()) {
        tokens_.push_back({Op::deep});
        i = end;
      } else {
        tokens_.push_back({Op::star});
        i = end;
      }
    } else if (glob[i] == '?') {
      tokens_.push_back({Op::any_one});
      ++i;
    } else if (glob[i] == '[') {
      i = compile_set(glob, i);
    } else {
      if (glob[i] == '\\') {
        if (++i == glob.size()) {
          valid_ = false;  // git: a pattern that ends in a lone backslash matches nothing
          return;
        }
      }
      tokens_.push_back({Op::literal, glob[i]});
      ++i;
    }
  }
}

// Returns where the set ends; a set that never ends makes a pattern that matches nothing, as in git.
std::size_t IgnorePattern::compile_set(std::string_view glob, std::size_t at) {
  Set set;
  std::size_t i = at + 1;
  const bool inverted = i < glob.size() && (glob[i] == '!' || glob[i] == '^');
  if (inverted) ++i;
  int previous = -1;
  for (bool first = true; i < glob.size() && (first || glob[i] != ']'); first = false) {
    if (glob[i] == '[' && i + 1 < glob.size() && glob[i + 1] == ':') {
      const std::size_t end = glob.find(":]", i + 2);
      if (end != std::string_view::npos) {
        const std::string_view name = glob.substr(i + 2, end - i - 2);
        const auto known = std::ranges::find_if(k_classes, [&](const auto& c) { return c.name == name; });
        if (known == k_classes.end()) valid_ = false;
        for (int c = 0; valid_ && c < 128; ++c) {
          if (known->test(c)) set.set(static_cast<std::size_t>(c));
        }
        previous = -1;
        i = end + 2;
        continue;
      }
    }
    if (glob[i] == '-' && previous >= 0 && i + 1 < glob.size() && glob[i + 1] != ']') {
      ++i;
      if (glob[i] == '\\' && i + 1 < glob.size()) ++i;
      for (int c = previous; c <= static_cast<unsigned char>(glob[i]); ++c) set.set(static_cast<std::size_t>(c));
      previous = -1;
      ++i;
      continue;
    }
    if (glob[i] == '\\' && i + 1 < glob.size()) ++i;
    previous = static_cast<unsigned char>(glob[i]);
    set.set(static_cast<std::size_t>(previous));
    ++i;
  }
  if (i >= glob.size()) {
    valid_ = false;
    return glob.size();
  }
  if (inverted) set.flip();
  set.reset('/');
  tokens_.push_back({Op::set, 0, static_cast<std::uint32_t>(sets_.size())});
  sets_.push_back(set);
  return i + 1;
}

// Adds the states reachable without reading: past a star, or past a "**/" that matches no directory.
void IgnorePattern::close_over(std::vector<bool>& states) const {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    if (states[i] && (tokens_[i].op == Op::star || tokens_[i].op == Op::directories)) states[i + 1] = true;
  }
}

// State i: tokens before i have matched. "**/" may be left only at the start of a component.
bool IgnorePattern::glob_matches(std::string_view text) const {
  std::vector<bool> now(tokens_.size() + 1, false), next;
  std::vector<bool> within(tokens_.size() + 1, false), next_within;  // inside a component that "**/" swallows
  now[0] = true;
  close_over(now);
  for (const char c : text) {
    next.assign(tokens_.size() + 1, false);
    next_within.assign(tokens_.size() + 1, false);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const Token& token = tokens_[i];
      if (token.op == Op::directories && (now[i] || within[i])) (c == '/' ? next : next_within)[i] = true;
      if (!now[i]) continue;
      switch (token.op) {
        case Op::literal:
          if (c == token.literal) next[i + 1] = true;
          break;
        case Op::any_one:
          if (c != '/') next[i + 1] = true;
          break;
        case Op::set:
          if (sets_[token.set].test(static_cast<unsigned char>(c))) next[i + 1] = true;
          break;
        case Op::star:
          if (c != '/') next[i] = true;
          break;
        case Op::deep: next[i] = next[i + 1] = true; break;
        case Op::directories: break;
      }
    }
    close_over(next);
    std::swap(now, next);
    std::swap(within, next_within);
  }
  return now[tokens_.size()];
}

bool IgnorePattern::matches(std::string_view relative, bool is_directory) const {
  if (!valid_ || (directory_only_ && !is_directory)) return false;
  if (!anchored_) {
    const std::size_t slash = relative.rfind('/');
    if (slash != std::string_view::npos) relative.remove_prefix(slash + 1);
  }
  return glob_matches(relative);
}

void IgnoreRules::add(std::string_view directory, std::string_view text) {
  Scope scope{directory.empty() ? std::string() : std::string(directory) + "/", {}};
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  for (const std::string& line : split(text, '\n')) {
    IgnorePattern pattern;
    if (IgnorePattern::parse(line, pattern)) scope.patterns.push_back(std::move(pattern));
  }
  if (!scope.patterns.empty()) scopes_.push_back(std::move(scope));
}

bool IgnoreRules::ignored(std::string_view path, bool is_directory) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    if (!path.starts_with(scope->prefix)) continue;
    const std::string_view relative = path.substr(scope->prefix.size());
    for (auto pattern = scope->patterns.rbegin(); pattern != scope->patterns.rend(); ++pattern) {
      if (pattern->matches(relative, is_directory)) return !pattern->negated();
    }
  }
  return false;
}

}  // namespace gridctl::store
