// SPDX-License-Identifier: Apache-2.0
#include "config/fields.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/formatted.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::config {

namespace {
// Maps words from other tools to their names here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 26> k_synonyms{{
    {"gpu", "accelerators"},
    {"gpus", "accelerators"},
    {"accelerator", "accelerators"},
    {"ram", "memory"},
    {"mem", "memory"},
    {"cpu", "cpus"},
    {"disk_space", "disk"},
    {"env", "envs"},
    {"environment", "envs"},
    {"command", "run"},
    {"commands", "run"},
    {"cmd", "run"},
    {"script", "run"},
    {"nodes", "num_nodes"},
    {"working_dir", "workdir"},
    {"mounts", "file_mounts"},
    {"container", "image"},
    {"docker", "image"},
    {"max_restarts", "max_failures"},
    {"timeout", "max_duration"},
    {"due", "deadline"},
    {"regions", "region"},
    {"provider", "providers"},
    {"parameters", "params"},
    {"gradients", "exchange"},
    {"num_tasks", "tasks"},
}};

std::string brief(double value) { return formatted("%.10g", value); }
}  // namespace

std::string shown(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null: return "nothing";
    case Node::Kind::scalar: return "'" + excerpt(node.text) + "'";
    case Node::Kind::list: return "a list";
    case Node::Kind::map: return "a mapping";
  }
  return "nothing";
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  std::string best = nearest(word, known);
  const auto letters = [](std::string text) {
    std::ranges::sort(text);
    return text;
  };
  for (const std::string& candidate : known)  // swapped letters: "nmae"
    if (letters(lower(word)) == letters(candidate)) best = candidate;
  for (const auto& [other, ours] : k_synonyms)
    if (lower(word) == other && std::ranges::find(known, ours) != known.end()) best = ours;
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

Result<double> parse_decimal(std::string_view text, NumberRange limits) {
  const Error bad = make_error(Code::usage, "a decimal number from " + brief(limits.min) + " to " + brief(limits.max));
  std::size_t i = 0;
  while (i < text.size() && is_digit(text[i])) ++i;
  const bool leading_zero = i > 1 && text[0] == '0';
  if (i == 0 || leading_zero) return bad;
  if (i < text.size()) {
    if (text[i] != '.' || i + 1 == text.size()) return bad;
    for (++i; i < text.size(); ++i)
      if (!is_digit(text[i])) return bad;
  }
  if (text.size() > 40) return bad;
  const double value = std::strtod(std::string(text).c_str(), nullptr);
  if (!(value >= limits.min && value <= limits.max)) return bad;
  return value;
}

Result<int> parse_integer(std::string_view text, int min, int max) {
  const Error bad =
      make_error(Code::usage, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
  const bool negative = min < 0 && text.starts_with('-');
  if (negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 9 || !std::ranges::all_of(text, is_digit)) return bad;
  if (text.size() > 1 && text[0] == '0') return bad;  // 010 would be 8 to YAML 1.1
  const int value = std::atoi(std::string(text).c_str()) * (negative ? -1 : 1);
  if (value < min || value > max) return bad;
  return value;
}

Result<Duration> parse_duration_within(std::string_view text, Duration min, Duration max) {
  const auto parsed = parse_duration(text);
  if (parsed && *parsed >= min && *parsed <= max) return parsed;
  return make_error(Code::usage, "a duration from " + format_duration(min) + " to " + format_duration(max) +
                                     " such as 90s, 15m or 1h30m");
}

namespace {
// Reads the position from an error's text: "FILE:LINE:COLUMN: …".
std::pair<int, int> position_in(const Error& error, const std::string& file) {
  std::pair<int, int> at{0, 0};
  if (!error.message.starts_with(file + ":")) return at;
  std::string_view rest = std::string_view(error.message).substr(file.size() + 1);
  at.first = take_number<int>(rest).value_or(0);
  if (rest.starts_with(':')) at.second = leading_number<int>(rest.substr(1)).value_or(0);
  return at;
}
}  // namespace

Error all_errors(const std::string& file, std::vector<Error> errors) {
  std::ranges::stable_sort(errors,
                           [&](const Error& a, const Error& b) { return position_in(a, file) < position_in(b, file); });
  Error all = std::move(errors.front());
  for (std::size_t i = 1; i < errors.size(); ++i) {
    all.context.push_back(errors[i].message);
    for (std::string& line : errors[i].context) all.context.push_back(std::move(line));
    if (all.hint.empty()) all.hint = errors[i].hint;
  }
  return all;
}

Result<Fields> Fields::open(SourceFile& source, const Node& node, std::string path,
                            std::initializer_list<std::string_view> known, std::vector<Error>* unknown) {
  const std::string where = path.empty() ? "" : "key '" + path + "': ";
  if (node.kind != Node::Kind::map)
    return error_at(source.file, node.at, where + "expected a mapping of keys to values, got " + shown(node));
  const std::vector<std::string> names(known.begin(), known.end());
  Fields fields(source, node, std::move(path));
  std::vector<Error> strange;
  for (const Key& key : node.keys)
    if (std::ranges::find(names, key.text) == names.end())
      strange.push_back(
          error_at(source.file, key.at,
                   "key '" + excerpt(fields.path(key.text)) + "': not a known key" + suggestion(key.text, names)));
  if (unknown != nullptr) unknown->insert(unknown->end(), strange.begin(), strange.end());
  else if (!strange.empty()) return all_errors(source.file, std::move(strange));
  return fields;
}

const Node* Fields::find(std::string_view key) const {
  const Node* value = node_->find(key);
  return value == nullptr || value->kind == Node::Kind::null ? nullptr : value;
}

Position Fields::at(std::string_view key) const {
  for (const Key& candidate : node_->keys)
    if (candidate.text == key) return candidate.at;
  return node_->at;
}

Error Fields::error(std::string_view key, const std::string& what) const {
  const Node* value = find(key);
  return error_at(source_->file, value != nullptr ? value->at : at(key), "key '" + path(key) + "': " + what);
}

Error Fields::expected(std::string_view key, const std::string& what) const {
  const Node* value = find(key);
  return error(key, "expected " + what + ", got " + (value != nullptr ? shown(*value) : "nothing"));
}

void Fields::ignore(std::string_view key, const std::string& why) const {
  if (find(key) != nullptr) source_->warn(at(key), "key '" + path(key) + "' is ignored: " + why);
}

Result<void> Fields::text(std::string_view key, std::string& into) const {
  const Node* value = find(key);
  if (value == nullptr) return {};
  if (value->kind != Node::Kind::scalar) return expected(key, "text");
  into = value->text;
  return {};
}

Result<void> Fields::boolean(std::string_view key, bool& into) const {
  return value(key, into, [](std::string_view text) -> Result<bool> {
    const std::string word = lower(text);
    if (word != "true" && word != "false") return make_error(Code::usage, "true or false");
    return word == "true";
  });
}

Result<void> Fields::choice(std::string_view key, std::string_view no, std::string_view yes, bool& into) const {
  std::string word;
  TRY(text(key, word));
  if (word.empty()) return {};
  if (word != no && word != yes) return expected(key, std::string(no) + " or " + std::string(yes));
  into = word == yes;
  return {};
}

std::span<const Node> items_of(const Node& value) {
  return value.kind == Node::Kind::list ? std::span<const Node>(value.items) : std::span(&value, 1);
}

namespace {
std::string scalar_of(const Node& value) { return value.kind == Node::Kind::scalar ? value.text : ""; }
}  // namespace

Result<void> Fields::words(std::string_view key, std::vector<std::string>& into) const {
  const Node* value = find(key);
  if (value == nullptr) return {};
  into.clear();
  for (const Node& item : items_of(*value)) {
    into.push_back(scalar_of(item));
    if (into.back().empty() || into.back().size() > 128)
      return error_at(source_->file, item.at,
                      "key '" + path(key) + "': expected a word or a list of words, got " + shown(item));
  }
  return {};
}

Result<void> Fields::exit_codes(std::string_view key, std::vector<int>& into) const {
  const Node* value = find(key);
  if (value == nullptr) return {};
  into.clear();
  for (const Node& item : items_of(*value)) {
    const auto code = parse_integer(scalar_of(item), 1, 255);
    if (!code)
      return error_at(source_->file, item.at,
                      "key '" + path(key) + "': expected exit codes from 1 to 255, got " + shown(item));
    if (std::ranges::find(into, *code) == into.end()) into.push_back(*code);
  }
  return {};
}

}  // namespace gridctl::config
