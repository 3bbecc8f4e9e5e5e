// SPDX-License-Identifier: Apache-2.0
// Implements the parser of the query language.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bytes.hpp"
#include "base/numbers.hpp"
#include "base/text.hpp"
#include "base/time.hpp"
#include "sched/catalogue/gpu_spec.hpp"
#include "sched/query/query.hpp"
#include "sched/query/query_text.hpp"

namespace gridctl::sched {

namespace {
constexpr std::size_t k_query_max = 4096;  // bytes; nobody types more
constexpr std::size_t k_terms_max = 64;
constexpr std::size_t k_values_max = 256;  // in one list
constexpr std::size_t k_window = 60;       // bytes of the query around a mistake, in its message
constexpr double k_unbounded = std::numeric_limits<double>::infinity();

struct Suffix {
  std::string_view text;
  double factor;
};
// Returns the suffixes that may follow a number of this unit, with their factors.
std::span<const Suffix> suffixes(Unit unit) {
  static constexpr Suffix k_mbit[] = {{"mbps", 1},    {"mbit/s", 1},    {"mbit", 1},    {"gbps", 1000},
                                      {"gbit", 1000}, {"gbit/s", 1000}, {"kbps", 1e-3}, {"kbit/s", 1e-3}};
  static constexpr Suffix k_gbyte[] = {{"gb/s", 1}, {"gb", 1}, {"mb/s", 1e-3}, {"tb/s", 1000}, {"tb", 1000}};
  static constexpr Suffix k_share[] = {{"%", 0.01}};
  static constexpr Suffix k_usd[] = {{"usd", 1}, {"$", 1}};
  static constexpr Suffix k_watts[] = {{"w", 1}, {"kw", 1000}};
  static constexpr Suffix k_celsius[] = {{"c", 1}};
  static constexpr Suffix k_ghz[] = {{"ghz", 1}, {"mhz", 1e-3}};
  static constexpr Suffix k_tflops[] = {{"tflops", 1}, {"tf", 1}, {"pflops", 1000}};
  switch (unit) {
    case Unit::mbit: return k_mbit;
    case Unit::gbyte_s: return k_gbyte;
    case Unit::share: return k_share;
    case Unit::usd: return k_usd;
    case Unit::watts: return k_watts;
    case Unit::celsius: return k_celsius;
    case Unit::ghz: return k_ghz;
    case Unit::tflops: return k_tflops;
    default: return {};
  }
}

// Parses a size or a time written with its unit, in units of the field.
std::optional<double> with_own_unit(Unit unit, const std::string& text) {
  if (unit == Unit::gib || unit == Unit::gpu_gib) {
    const Result<std::uint64_t> bytes = parse_size(text);
    return bytes ? std::optional{static_cast<double>(*bytes) / k_gib} : std::nullopt;
  }
  const double scale = unit == Unit::hours ? 3600 : unit == Unit::seconds ? 1 : unit == Unit::ms ? 1e-3 : 0;
  if (scale == 0) return std::nullopt;
  const Result<Duration> duration = parse_duration(text);
  return duration ? std::optional{seconds(*duration) / scale} : std::nullopt;
}

std::optional<double> parse_flag(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "1", "on"})
    if (text == word) return 1;
  for (const std::string_view word : {"false", "no", "0", "off"})
    if (text == word) return 0;
  return std::nullopt;
}

std::optional<double> parse_amount(Unit unit, std::string_view given) {
  const std::string text = lower(trim(given));
  if (unit == Unit::flag) return parse_flag(text);
  if (unit == Unit::version) return version_number(text);
  std::string_view rest = text;
  if (unit == Unit::usd && rest.starts_with('$')) rest.remove_prefix(1);
  const auto number = take_number<double>(rest);
  if (!number || !std::isfinite(*number)) return std::nullopt;
  double value = *number;
  if (unit == Unit::capability && value >= 100) value /= 100;
  if (unit == Unit::share && rest.empty() && value > 1) return std::nullopt;
  if (trim(rest).empty()) return value;
  for (const Suffix& suffix : suffixes(unit))
    if (trim(rest) == suffix.text) return value * suffix.factor;
  return with_own_unit(unit, text);
}

std::optional<NumberRange> parse_range(Unit unit, std::string_view text) {
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    const std::optional<double> value = parse_amount(unit, text);
    return value ? std::optional{NumberRange{*value, *value}} : std::nullopt;
  }
  std::string low(trim(text.substr(0, dots)));
  const std::string high(trim(text.substr(dots + 2)));
  if (low.empty() && high.empty()) return std::nullopt;
  // "16..24GB": the unit of one end applies to both.
  if (!low.empty() && low.find_first_not_of("0123456789.") == std::string::npos && unit != Unit::version)
    low += high.substr(std::min(high.find_first_not_of("0123456789."), high.size()));
  const auto from = low.empty() ? std::optional{-k_unbounded} : parse_amount(unit, low);
  const auto to = high.empty() ? std::optional{k_unbounded} : parse_amount(unit, high);
  if (!from || !to || *from > *to) return std::nullopt;
  return NumberRange{*from, *to};
}

std::string expected_text(const Field& field) {
  if (field.unit == Unit::flag) return "true or false";
  if (field.unit == Unit::version) return "a version such as 12.4";
  if (field.unit == Unit::share) return "a share such as 0.98 or 98%";
  const std::string_view unit = unit_name(field.unit);
  return unit.empty() ? "a number" : "a number of " + std::string(unit) + ", or one with its unit";
}

bool is_text(Unit unit) {
  return unit == Unit::text || unit == Unit::part || unit == Unit::gpu_name || unit == Unit::region;
}

std::string normal_value(const Field& field, std::string_view text) {
  if (field.unit == Unit::gpu_name) {
    std::string name(trim(text));
    std::ranges::replace(name, '_', ' ');
    return name;
  }
  std::string value = normal_text(text);
  if (is_one_of(field.name, {"cpu_arch"})) value = is_one_of(value, {"amd64"}) ? "x86 64" : is_one_of(value, {"arm64"}) ? "aarch64" : value;
  return value;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Term>> parse() {
    if (text_.size() > k_query_max) return error(k_query_max, "the query is longer than 4 KiB");
    std::vector<Term> terms;
    for (skip_space(); at_ < text_.size(); skip_space()) {
      if (terms.size() == k_terms_max) return error(at_, "the query has more than 64 terms");
      TRY_ASSIGN(Term term, parse_term());
      terms.push_back(std::move(term));
    }
    return terms;
  }

 private:
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n,").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(std::string_view what) {
    if (!rest().starts_with(what)) return false;
    at_ += what.size();
    return true;
  }
  // Takes a word that ends there: the next character cannot continue it.
  bool take_word(std::string_view what) {
    if (lower(rest().substr(0, what.size())) != what) return false;
    const std::size_t next = at_ + what.size();
    if (next < text_.size() && std::string_view(" \t\n[\"'").find(text_[next]) == std::string_view::npos) return false;
    at_ = next;
    return true;
  }

  [[nodiscard]] Error error(std::size_t at, const std::string& what) const {
    const std::size_t from = at > k_window / 2 ? at - k_window / 2 : 0;
    std::string window(text_.substr(from, k_window));
    std::ranges::replace_if(
        window, [](char c) { return c < 0x20 || c > 0x7e; }, '?');
    Error out = make_error(Code::usage, "character " + std::to_string(at + 1) + " of the query: " + what);
    return std::move(out)
        .with_context("  " + window)
        .with_context("  " + std::string(std::min(at - from, window.size()), ' ') + "^");
  }

  Result<Term> parse_term() {
    Term term;
    const std::size_t begin = at_;
    while (take("!") || take_word("not")) {
      term.negated = !term.negated;
      skip_space();
    }
    const std::size_t word_at = at_;
    const std::size_t end = std::min(text_.find_first_of(" \t\n=!<>[", at_), text_.size());
    const std::string word(text_.substr(at_, end - at_));
    at_ = end;
    skip_space();
    const std::size_t op_at = at_;
    const bool has_op = parse_op(term);
    if (!has_op) at_ = end;
    TRY(resolve(term, word, word_at, op_at, has_op));
    if (has_op) TRY(parse_values(term));
    term.source = std::string(trim(text_.substr(begin, at_ - begin)));
    return term;
  }

  // Parses the term's operator, if there is one here. `in` and `notin` are (in)equality with a list.
  bool parse_op(Term& term) {
    struct Spelling {
      std::string_view text;
      Term::Op op;
      bool negates;
    };
    using Op = Term::Op;
    static constexpr Spelling k_signs[] = {
        {"==", Op::equal, false},   {"!=", Op::equal, true}, {"<>", Op::equal, true}, {">=", Op::at_least, false},
        {"<=", Op::at_most, false}, {"=", Op::equal, false}, {">", Op::more, false},  {"<", Op::less, false}};
    static constexpr Spelling k_named[] = {
        {"in", Op::equal, false},    {"notin", Op::equal, true}, {"not_in", Op::equal, true},
        {"not in", Op::equal, true}, {"nin", Op::equal, true},   {"eq", Op::equal, false},
        {"neq", Op::equal, true},    {"noteq", Op::equal, true}, {"lt", Op::less, false},
        {"lte", Op::at_most, false}, {"gt", Op::more, false},    {"gte", Op::at_least, false}};
    const auto found = [&](const Spelling& spelling) {
      term.op = spelling.op;
      term.negated = term.negated != spelling.negates;
      return true;
    };
    for (const Spelling& sign : k_signs)
      if (take(sign.text)) return found(sign);
    for (const Spelling& word : k_named)
      if (take_word(word.text)) return found(word);
    return false;
  }

  // Finds the field of the term, and whether this question about it is allowed.
  Result<void> resolve(Term& term, const std::string& word, std::size_t word_at, std::size_t op_at, bool has_op) const {
    if (word.empty()) return error(word_at, "expected a field here");
    term.field = find_field(word);
    if (term.field == nullptr && !has_op &&
        (word.find(':') != std::string::npos || word.find("..") != std::string::npos)) {
      term.field = find_field("gpu");
      return read_gpu(term, word, word_at);
    }
    if (term.field == nullptr) return unknown_field(word, word_at);
    if (term.field->name == k_label_field) term.label = word.substr(6);
    const Unit unit = term.field->unit;
    if (!has_op && unit != Unit::flag)
      return error(op_at, "after '" + word + "' one of = != < <= > >= in notin must follow");
    if (!has_op) term.numbers = {{1, 1}};
    if (term.op != Term::Op::equal && (is_text(unit) || unit == Unit::flag || unit == Unit::gpu_spec))
      return error(op_at, "'" + word + "' cannot be ordered: use = != in notin");
    return {};
  }

  [[nodiscard]] Error unknown_field(const std::string& word, std::size_t at) const {
    const std::string shown = "'" + sanitize(word.substr(0, 40)) + "'";
    if (const std::string_view why = why_not_here(word); !why.empty())
      return error(at, shown + " has no meaning here: " + std::string(why));
    const std::string near = nearest_field(word);
    return error(at, "there is no field " + shown + (near.empty() ? "" : "; did you mean " + near + "?"))
        .with_hint("man gridctl-query");
  }

  Result<void> parse_values(Term& term) {
    skip_space();
    if (at_ >= text_.size()) return error(text_.size(), "expected a value here");
    if (!take("[")) {
      const std::size_t at = at_;
      TRY_ASSIGN(const std::string value, parse_value(" \t\n"));
      std::string_view whole = value;
      while (whole.ends_with(',')) whole.remove_suffix(1);
      if (!is_text(term.field->unit)) return add_value(term, whole, at);
      for (const std::string& one : split(whole, ',')) TRY(add_value(term, one, at));
      return {};
    }
    const std::size_t list_at = at_ - 1;
    for (;;) {
      skip_space();
      if (take("]")) break;
      if (at_ >= text_.size()) return error(list_at, "this list has no ]");
      if (term.texts.size() + term.numbers.size() >= k_values_max) return error(at_, "the list is too long");
      const std::size_t at = at_;
      TRY_ASSIGN(const std::string value, parse_value(",]"));
      TRY(add_value(term, trim(value), at));
    }
    if (term.texts.empty() && term.numbers.empty() && term.gpus.empty() && !term.always)
      return error(list_at, "the list is empty");
    return {};
  }

  // Parses a quoted text, or everything up to one of `stops`.
  Result<std::string> parse_value(std::string_view stops) {
    const std::size_t at = at_;
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const std::size_t close = text_.find(text_[at_], at_ + 1);
      if (close == std::string_view::npos) return error(at, "this quote is not closed");
      at_ = close + 1;
      return std::string(text_.substr(at + 1, close - at - 1));
    }
    const std::size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    at_ = end;
    return std::string(text_.substr(at, end - at));
  }

  Result<void> add_value(Term& term, std::string_view text, std::size_t at) const {
    const Field& field = *term.field;
    if (trim(text).empty()) return error(at, "expected a value here");
    if (is_one_of(lower(trim(text)), {"any"}) && term.op == Term::Op::equal) {
      term.always = true;
      return {};
    }
    if (field.unit == Unit::gpu_spec) return read_gpu(term, text, at);
    if (is_text(field.unit)) {
      term.texts.push_back(normal_value(field, text));
      return {};
    }
    const std::optional<NumberRange> range = parse_range(field.unit, text);
    const bool ordered = term.op != Term::Op::equal;
    if (!range || (ordered && range->low != range->high))
      return error(at, "'" + std::string(field.name) + "' wants " + expected_text(field) + ", not '" +
                           sanitize(text.substr(0, 40)) + "'");
    term.numbers.push_back(*range);
    return {};
  }

  Result<void> read_gpu(Term& term, std::string_view text, std::size_t at) const {
    const Result<job::GpuRequest> request = parse_gpu_spec(text);
    if (!request) return error(at, request.error().message);
    term.gpus.push_back(*request);
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};
}  // namespace

std::string normal_text(std::string_view text) {
  std::string out = lower(trim(text));
  std::ranges::replace(out, '_', ' ');
  std::ranges::replace(out, '-', ' ');
  return out;
}

std::string nearest_field(std::string_view word) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Field& field : query_fields()) {
      all.emplace_back(field.name);
      for (const std::string& alias : split(field.aliases, ' '))
        if (!alias.empty()) all.push_back(alias);
    }
    return all;
  }();
  return nearest(word, names);
}

Result<Query> Query::parse(std::string_view text) {
  Query query;
  TRY_ASSIGN(query.terms_, Parser(text).parse());
  query.order_by_cost();
  return query;
}

}  // namespace gridctl::sched
