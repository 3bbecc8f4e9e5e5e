// SPDX-License-Identifier: Apache-2.0
#include "cmd/provider_query.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
constexpr double k_gib = 1024.0 * 1024 * 1024;
constexpr std::size_t k_terms_max = 64;

const std::vector<std::string>& numbers() {
  static const std::vector<std::string> k_names{"num_gpus", "gpu_ram", "cpus", "ram", "disk", "price"};
  return k_names;
}
const std::vector<std::string>& texts() {
  static const std::vector<std::string> k_names{"name", "state", "region", "site", "class", "engine", "gpu_name"};
  return k_names;
}
bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

double number_of(const std::string& field, const registry::Provider& provider) {
  const Inventory& inventory = provider.inventory;
  if (field == "num_gpus") return static_cast<double>(inventory.gpus.size());
  if (field == "cpus") return inventory.cpus;
  if (field == "ram") return static_cast<double>(inventory.memory_bytes) / k_gib;
  if (field == "disk") return static_cast<double>(inventory.disk_free_bytes) / k_gib;
  if (field == "price") return provider.price_per_hour;
  std::uint64_t least = 0;  // gpu_ram: what every GPU of the host has at least
  for (const Gpu& gpu : inventory.gpus) least = least == 0 ? gpu.memory_bytes : std::min(least, gpu.memory_bytes);
  return static_cast<double>(least) / k_gib;
}

std::vector<std::string> texts_of(const std::string& field, const registry::Provider& provider) {
  if (field == "name") return {provider.name.value};
  if (field == "state") return {provider.drained ? "drained" : provider.liveness};
  if (field == "region") return {provider.region};
  if (field == "site") return {provider.site};
  if (field == "class") return {provider.host_class};
  if (field == "engine") return {provider.engine};
  if (field.starts_with("label.")) {
    const auto found = provider.labels.find(field.substr(6));
    return {found == provider.labels.end() ? std::string{} : found->second};
  }
  std::vector<std::string> names;
  for (const Gpu& gpu : provider.inventory.gpus) names.push_back(gpu.name);
  return names;
}

std::string normal(std::string_view text) {
  std::string out = lower(trim(text));
  std::replace(out.begin(), out.end(), '_', ' ');
  std::replace(out.begin(), out.end(), '-', ' ');
  return out;
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  void skip_space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == ',')) rest_.remove_prefix(1);
  }
  bool at_end() {
    skip_space();
    return rest_.empty();
  }
  std::string word(std::string_view stops) {
    skip_space();
    const std::size_t end = std::min(rest_.find_first_of(stops), rest_.size());
    std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return out;
  }
  std::string op() {
    skip_space();
    for (const std::string_view known : {"==", "!=", ">=", "<=", "=", ">", "<"})
      if (rest_.starts_with(known)) {
        rest_.remove_prefix(known.size());
        return known == "==" ? "=" : std::string(known);
      }
    const std::string named = word(" [");
    return named == "in" || named == "notin" || named == "not_in" ? (named == "in" ? "in" : "notin") : std::string{};
  }
  std::vector<std::string> values() {
    skip_space();
    if (!rest_.starts_with('[')) return {unquote(word(" "))};
    rest_.remove_prefix(1);
    const std::size_t end = rest_.find(']');
    if (end == std::string_view::npos) return {};
    std::vector<std::string> out;
    for (const std::string& part : split(rest_.substr(0, end), ',')) out.push_back(unquote(trim(part)));
    rest_.remove_prefix(end + 1);
    return out;
  }

 private:
  static std::string unquote(std::string_view text) {
    if (text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0])
      text = text.substr(1, text.size() - 2);
    return std::string(text);
  }
  std::string_view rest_;
};

Error unknown_field(const std::string& field) {
  std::vector<std::string> known = texts();
  known.insert(known.end(), numbers().begin(), numbers().end());
  const std::string near = nearest(field, known);
  return make_error(Code::usage, "providers have no field '" + sanitize(field) + "'" +
                                     (near.empty() ? "; there are " + join(known, ", ") + " and label.KEY"
                                                   : "; did you mean " + near + "?"));
}

Result<void> check(const QueryTerm& term) {
  const bool is_number = is_among(numbers(), term.field);
  if (!is_number && !is_among(texts(), term.field) && !term.field.starts_with("label."))
    return unknown_field(term.field);
  if (term.op.empty())
    return make_error(Code::usage, "after '" + term.field + "' one of = != > >= < <= in notin must follow");
  const bool ordered = term.op[0] == '<' || term.op[0] == '>';
  if (ordered && !is_number) return make_error(Code::usage, "'" + term.field + "' is a text: it has no order");
  if (term.values.empty() || term.values[0].empty())
    return make_error(Code::usage, "'" + term.field + " " + term.op + "' needs a value");
  for (const std::string& value : term.values)
    if (is_number && !parse_number(value))
      return make_error(Code::usage, "'" + term.field + "' is a number, '" + sanitize(value) + "' is not");
  return {};
}

bool equals(const QueryTerm& term, const std::string& value, const registry::Provider& provider) {
  if (is_among(numbers(), term.field)) return std::fabs(number_of(term.field, provider) - *parse_number(value)) < 1e-9;
  for (const std::string& own : texts_of(term.field, provider)) {
    if (normal(own) == normal(value)) return true;
    if (term.field == "gpu_name" && normal(own).find(normal(value)) != std::string::npos) return true;
  }
  return false;
}

bool holds(const QueryTerm& term, const registry::Provider& provider) {
  if (term.op[0] == '<' || term.op[0] == '>') {
    const double own = number_of(term.field, provider), wanted = *parse_number(term.values[0]);
    if (term.op == "<") return own < wanted;
    if (term.op == "<=") return own <= wanted;
    return term.op == ">" ? own > wanted : own >= wanted;
  }
  bool any = false;
  for (const std::string& value : term.values) any = any || equals(term, value, provider);
  return term.op == "!=" || term.op == "notin" ? !any : any;
}
}  // namespace

Result<std::vector<QueryTerm>> parse_query(std::string_view text) {
  std::vector<QueryTerm> query;
  for (Reader reader(text); !reader.at_end();) {
    QueryTerm term;
    term.field = reader.word(" =!<>[");
    term.op = reader.op();
    term.values = reader.values();
    TRY(check(term));
    query.push_back(std::move(term));
    if (query.size() > k_terms_max) return make_error(Code::usage, "the query has too many terms");
  }
  return query;
}

bool matches(const std::vector<QueryTerm>& query, const registry::Provider& provider) {
  return std::all_of(query.begin(), query.end(), [&](const QueryTerm& term) { return holds(term, provider); });
}

Result<void> sort_by(std::vector<registry::Provider>& providers, const std::string& order) {
  const bool descending = order.ends_with('-');
  const std::string field = order.substr(0, order.size() - (descending ? 1 : 0));
  const bool is_number = is_among(numbers(), field);
  if (!is_number && !is_among(texts(), field)) return unknown_field(field);
  const auto before = [&](const registry::Provider& a, const registry::Provider& b) {
    const registry::Provider& first = descending ? b : a;
    const registry::Provider& second = descending ? a : b;
    if (is_number) return number_of(field, first) < number_of(field, second);
    return texts_of(field, first) < texts_of(field, second);
  };
  std::stable_sort(providers.begin(), providers.end(), before);
  return {};
}

}  // namespace gridctl::cmd
