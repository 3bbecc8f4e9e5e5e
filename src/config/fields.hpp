// SPDX-License-Identifier: Apache-2.0
// Reads one mapping of a job file with types. Each reader leaves its target unchanged if the key is missing or null,
// and otherwise gives "FILE:LINE:COLUMN: key 'a.b': expected …, got …" for a wrong value.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/time.hpp"
#include "config/yaml.hpp"

namespace gridctl::config {

struct SourceFile {
  std::string file;
  std::vector<std::string> warnings;
  void warn(Position at, const std::string& text) {
    warnings.push_back(file + ":" + std::to_string(at.line) + ":" + std::to_string(at.column) + ": " + text);
  }
};

// Returns "the list [..]" or "'abc'", to follow "got …".
[[nodiscard]] std::string shown(const Node& node);
// Returns the items of a list, or the one value.
[[nodiscard]] std::span<const Node> items_of(const Node& value);
// Returns "; did you mean 'x'?" or "".
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& known);

// Merges all errors into one, in the order of the file. REQUIRES: not empty.
[[nodiscard]] Error all_errors(const std::string& file, std::vector<Error> errors);

struct NumberRange {
  double min = 0;
  double max = 0;
};

inline constexpr NumberRange k_budget_limits{0, 1e9};  // USD

// Accepts strict decimal numbers: no exponent, no leading zero, no hexadecimal, no sign.
[[nodiscard]] Result<double> parse_decimal(std::string_view text, NumberRange limits);
[[nodiscard]] Result<int> parse_integer(std::string_view text, int min, int max);
[[nodiscard]] Result<Duration> parse_duration_within(std::string_view text, Duration min, Duration max);

class Fields {
 public:
  // `path`: "" for the file itself, otherwise a name such as "resources". Refuses anything but a mapping, and unknown
  // keys; with `unknown`, those errors are collected there and the rest can be read.
  [[nodiscard]] static Result<Fields> open(SourceFile& source, const Node& node, std::string path,
                                           std::initializer_list<std::string_view> known,
                                           std::vector<Error>* unknown = nullptr);

  [[nodiscard]] const Node* find(std::string_view key) const;  // nullptr when missing or null
  [[nodiscard]] Position at(std::string_view key) const;       // of the key
  [[nodiscard]] std::string path(std::string_view key) const {
    return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
  }
  [[nodiscard]] Error error(std::string_view key, const std::string& what) const;     // at the value
  [[nodiscard]] Error expected(std::string_view key, const std::string& what) const;  // "expected WHAT, got …"
  void ignore(std::string_view key, const std::string& why) const;                    // warns when the key is given
  [[nodiscard]] SourceFile& source() const { return *source_; }
  [[nodiscard]] const Node& node() const { return *node_; }

  [[nodiscard]] Result<void> text(std::string_view key, std::string& into) const;
  [[nodiscard]] Result<void> integer(std::string_view key, int min, int max, auto& into) const {  // an int, or optional
    return value(key, into, [&](std::string_view text) { return parse_integer(text, min, max); });
  }
  [[nodiscard]] Result<void> number(std::string_view key, NumberRange limits, auto& into) const {  // a double, or optional
    return value(key, into, [&](std::string_view text) { return parse_decimal(text, limits); });
  }
  [[nodiscard]] Result<void> duration(std::string_view key, Duration min, Duration max, auto& into) const {
    return value(key, into, [&](std::string_view text) { return parse_duration_within(text, min, max); });
  }
  [[nodiscard]] Result<void> boolean(std::string_view key, bool& into) const;
  // Uses a function whose error says what is expected.
  [[nodiscard]] Result<void> value(std::string_view key, auto& into, auto parse) const {
    const Node* node = find(key);
    if (node == nullptr) return {};
    const auto parsed = parse(node->kind == Node::Kind::scalar ? std::string_view(node->text) : "");
    if (!parsed) return expected(key, parsed.error().message);
    into = *parsed;
    return {};
  }
  // Reads one of two words; the second means `true`.
  [[nodiscard]] Result<void> choice(std::string_view key, std::string_view no, std::string_view yes, bool& into) const;
  // Reads one word or a list of words.
  [[nodiscard]] Result<void> words(std::string_view key, std::vector<std::string>& into) const;
  // Reads one exit code or a list of them, 1..255.
  [[nodiscard]] Result<void> exit_codes(std::string_view key, std::vector<int>& into) const;

 private:
  Fields(SourceFile& source, const Node& node, std::string path) : source_(&source), node_(&node), path_(std::move(path)) {}
  SourceFile* source_;
  const Node* node_;
  std::string path_;
};

}  // namespace gridctl::config
