// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_query.hpp"

#include <cctype>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
using Kind = JobField::Kind;

std::optional<std::string> if_any(std::string text) {
  return text.empty() ? std::nullopt : std::optional{lower(text)};
}
double seconds_from(WallTime from, WallTime to) { return static_cast<double>(to.ms - from.ms) / 1000; }

constexpr JobField k_fields[] = {
    {"id", Kind::text, [](const ListedJob& j) { return if_any(j.row.id.value); }, nullptr},
    {"name", Kind::text, [](const ListedJob& j) { return if_any(j.row.name); }, nullptr},
    {"state", Kind::text, [](const ListedJob& j) { return if_any(std::string(job::state_name(j.row.state))); }, nullptr},
    {"reason", Kind::text, [](const ListedJob& j) { return if_any(j.row.reason); }, nullptr},
    {"provider", Kind::text, [](const ListedJob& j) { return if_any(j.host.value); }, nullptr},
    {"resources", Kind::text, [](const ListedJob& j) { return if_any(j.row.resources); }, nullptr},
    {"exit_code", Kind::number, nullptr,
     [](const ListedJob& j) { return j.row.exit_code ? std::optional<double>{*j.row.exit_code} : std::nullopt; }},
    {"moves", Kind::number, nullptr, [](const ListedJob& j) { return std::optional<double>{j.row.recoveries}; }},
    {"cost", Kind::number, nullptr, [](const ListedJob& j) { return std::optional{j.cost}; }},
    {"age", Kind::duration, nullptr,
     [](const ListedJob& j) { return std::optional{seconds_from(j.row.submitted_at, j.now)}; }},
    {"took", Kind::duration, nullptr,
     [](const ListedJob& j) { return std::optional{seconds_from(j.row.submitted_at, j.row.ended_at.value_or(j.now))}; }},
    {"ended", Kind::duration, nullptr, [](const ListedJob& j) {
       return j.row.ended_at ? std::optional{seconds_from(*j.row.ended_at, j.now)} : std::nullopt;
     }}};

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (const JobField& field : k_fields) names.emplace_back(field.name);
  return names;
}

Result<const JobField*> field_of(const std::string& name) {
  for (const JobField& field : k_fields)
    if (field.name == name) return &field;
  const std::string near = nearest(name, field_names());
  return make_error(Code::usage,
                    "no field '" + sanitize(name) + "' of jobs" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
                    "fields: " + join(field_names(), ", "));
}

std::optional<double> number_of(const JobField& field, std::string_view text) {
  if (field.kind == Kind::duration) {
    const Result<Duration> parsed = parse_duration(text);
    return parsed ? std::optional{seconds(*parsed)} : std::nullopt;
  }
  if (text.starts_with('$')) text.remove_prefix(1);
  return parse_number<double>(text);
}

bool fits_text(const std::string& has, std::string_view op, const std::string& value) {
  if (op == "<") return has < value;
  if (op == ">") return has > value;
  if (op == "<=") return has <= value;
  if (op == ">=") return has >= value;
  return value.ends_with('*') ? has.starts_with(value.substr(0, value.size() - 1)) : has == value;
}

bool fits_number(double has, std::string_view op, double value) {
  if (op == "<") return has < value;
  if (op == ">") return has > value;
  if (op == "<=") return has <= value;
  if (op == ">=") return has >= value;
  return has == value;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool at_end() {
    skip();
    return at_ >= text_.size();
  }
  bool take(std::string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  // Takes a word operator: an end of word must follow.
  bool take_word(std::string_view word) {
    skip();
    const std::string_view rest = text_.substr(at_);
    if (!rest.starts_with(word)) return false;
    if (rest.size() > word.size() && (std::isalnum(static_cast<unsigned char>(rest[word.size()])) != 0 || rest[word.size()] == '_'))
      return false;
    at_ += word.size();
    return true;
  }
  std::string name() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string value(std::string_view ends) {
    skip();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) {
      const std::size_t end = text_.find(text_[at_], at_ + 1);
      const std::string found(text_.substr(at_ + 1, end == std::string_view::npos ? end : end - at_ - 1));
      at_ = end == std::string_view::npos ? text_.size() : end + 1;
      return found;
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != ' ' && ends.find(text_[at_]) == std::string_view::npos) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string rest() const { return std::string(text_.substr(at_)); }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

Error unreadable_term(const std::string& what) {
  return make_error(Code::usage, "expected FIELD OPERATOR VALUE" + what, "gridctl job ls --help");
}
}  // namespace

Result<JobQuery> JobQuery::parse(std::string_view text) {
  JobQuery query;
  Scanner scan(text);
  while (!scan.at_end()) {
    Term term;
    term.negated = scan.take_word("not") || scan.take("!");
    const std::string name = lower(scan.name());
    if (name.empty()) return unreadable_term(", not '" + sanitize(scan.rest()) + "'");
    TRY_ASSIGN(term.field, field_of(name));
    const bool none_of = scan.take_word("notin") || scan.take_word("nin");
    if (none_of || scan.take_word("in")) {
      term.op = none_of ? "!=" : "=";
      if (!scan.take("[")) return unreadable_term(": expected [VALUE, VALUE] after 'in'");
      do term.values.push_back(scan.value(",]"));
      while (scan.take(","));
      if (!scan.take("]")) return unreadable_term(": the list of '" + name + "' has no ]");
    } else {
      for (const std::string_view op : {"!=", "<=", ">=", "==", "=", "<", ">"})
        if (term.op.empty() && scan.take(op)) term.op = op == "==" ? "=" : op;
      if (term.op.empty()) return unreadable_term(" with one of = != < <= > >= in notin, after '" + name + "'");
      term.values.push_back(scan.value(""));
    }
    for (std::string& value : term.values) {
      value = lower(value);
      if (value.empty()) return unreadable_term(": '" + name + "' has no value");
      if (term.field->kind != Kind::text && !number_of(*term.field, value))
        return make_error(Code::usage,
                          "'" + sanitize(value) + "' is not " +
                              (term.field->kind == Kind::duration ? "a duration such as 12h" : "a number") + " for '" +
                              name + "'");
    }
    query.terms_.push_back(std::move(term));
  }
  return query;
}

bool JobQuery::matches(const ListedJob& job) const {
  for (const Term& term : terms_) {
    const bool unlike = term.op == "!=";
    bool fits = false;
    if (term.field->kind == Kind::text) {
      const auto has = term.field->text(job);
      if (!has) return false;
      for (const std::string& value : term.values) fits = fits || fits_text(*has, unlike ? "=" : term.op, value);
    } else {
      const auto has = term.field->number(job);
      if (!has) return false;
      for (const std::string& value : term.values)
        fits = fits || fits_number(*has, unlike ? "=" : term.op, *number_of(*term.field, value));
    }
    if ((fits != unlike) == term.negated) return false;
  }
  return true;
}

Result<JobOrder> JobOrder::parse(std::string_view text) {
  JobOrder order;
  for (std::string name : split(text, ',')) {
    const bool descending = name.ends_with('-');
    if (descending) name.pop_back();
    TRY_ASSIGN(const JobField* field, field_of(lower(name)));
    order.keys_.emplace_back(field, descending);
  }
  return order;
}

bool JobOrder::before(const ListedJob& a, const ListedJob& b) const {
  const auto less = [](const auto& one, const auto& other, bool descending) -> int {
    if (!one || !other) return one.has_value() == other.has_value() ? 0 : (one ? -1 : 1);
    if (*one == *other) return 0;
    return (*one < *other) != descending ? -1 : 1;
  };
  for (const auto& [field, descending] : keys_) {
    const int order = field->kind == Kind::text ? less(field->text(a), field->text(b), descending)
                                                : less(field->number(a), field->number(b), descending);
    if (order != 0) return order < 0;
  }
  return false;
}

}  // namespace gridctl::cmd
