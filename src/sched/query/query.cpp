// SPDX-License-Identifier: Apache-2.0
#include "sched/query/query.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/bytes.hpp"
#include "base/formatted.hpp"
#include "base/text.hpp"
#include "sched/catalogue/gpu_match.hpp"
#include "sched/query/host_facts.hpp"
#include "sched/query/query_text.hpp"

namespace gridctl::sched {

namespace {
constexpr double k_same = 1e-9;  // relative difference of equal numbers
// Tolerances of a nominal GPU memory, as in `match_gpu`.
constexpr double k_memory_less = 0.95, k_memory_more = 1.08;
constexpr std::size_t k_order_keys_max = 16;

double slack_down(const Field& field, double bound) {
  return field.unit == Unit::gpu_gib ? bound * k_memory_less : bound - std::abs(bound) * k_same;
}
double slack_up(const Field& field, double bound) {
  return field.unit == Unit::gpu_gib ? bound * k_memory_more : bound + std::abs(bound) * k_same;
}

bool number_holds(const Term& term, double own) {
  const auto holds = [&](const NumberRange& range) {
    switch (term.op) {
      case Term::Op::equal:
        return own >= slack_down(*term.field, range.low) && own <= slack_up(*term.field, range.high);
      case Term::Op::less: return own < slack_down(*term.field, range.low);
      case Term::Op::at_most: return own <= slack_up(*term.field, range.high);
      case Term::Op::more: return own > slack_up(*term.field, range.high);
      case Term::Op::at_least: return own >= slack_down(*term.field, range.low);
    }
    return false;
  };
  return std::ranges::any_of(term.numbers, holds);
}

bool text_holds(const Term& term, std::string_view own) {
  const Unit unit = term.field->unit;
  if (unit == Unit::gpu_name)
    return std::ranges::any_of(term.texts, [&](const std::string& wanted) { return gpu_name_matches(wanted, own); });
  const std::string normal = normal_text(own);
  return std::ranges::any_of(term.texts, [&](const std::string& wanted) {
    if (unit == Unit::part) return normal.find(wanted) != std::string::npos;
    return normal == wanted || (unit == Unit::region && normal.starts_with(wanted + " "));
  });
}

// Returns true if enough GPUs satisfy the request; a job would not get more than it allows.
bool gpus_hold(const Term& term, const Inventory& inventory) {
  return std::ranges::any_of(term.gpus, [&](const job::GpuRequest& request) {
    const auto count = std::ranges::count_if(
        inventory.gpus, [&](const Gpu& gpu) { return match_gpu(request, gpu) == GpuMismatch::none; });
    return count >= request.count_min;
  });
}

std::string_view label_of(const Subject& host, const std::string& key) {
  if (host.labels == nullptr) return {};
  const auto found = host.labels->find(key);
  return found == host.labels->end() ? std::string_view{} : std::string_view(found->second);
}

// Returns the known texts of a host for a term. A label that was not given is known to be empty.
std::vector<std::string_view> texts_of(const Field& field, const std::string& label, const Subject& host) {
  std::vector<std::string_view> out;
  if (field.texts != nullptr) field.texts(host, out);
  else if (!label.empty()) out.push_back(label_of(host, label));
  return out;
}

std::optional<bool> raw(const Term& term, const Subject& host) {
  if (term.field->unit == Unit::gpu_spec) return gpus_hold(term, *host.inventory);
  if (term.field->number != nullptr) {
    const std::optional<double> own = term.field->number(host);
    return own ? std::optional{number_holds(term, *own)} : std::nullopt;
  }
  const std::vector<std::string_view> own = texts_of(*term.field, term.label, host);
  if (own.empty()) return std::nullopt;
  return std::ranges::any_of(own, [&](std::string_view text) { return text_holds(term, text); });
}

bool holds(const Term& term, const Subject& host) {
  if (term.always) return true;
  const std::optional<bool> result = raw(term, host);
  return result && *result != term.negated;
}

std::string number_text(const Field& field, double value) {
  if (field.unit == Unit::flag) return value > 0 ? "true" : "false";
  if (field.unit == Unit::version) return version_text(value);
  if (field.unit == Unit::gib || field.unit == Unit::gpu_gib)
    return format_size(static_cast<std::uint64_t>(std::max(0.0, value) * k_gib));
  const std::string_view unit = field.unit == Unit::share ? std::string_view{} : unit_name(field.unit);
  return formatted("%.4g", value) + (unit.empty() ? "" : " " + std::string(unit));
}

std::string own_text(const Term& term, const Subject& host) {
  if (term.field->unit == Unit::gpu_spec) {
    std::vector<std::string> names;
    for (const Gpu& gpu : host.inventory->gpus) names.push_back(describe(gpu));
    return names.empty() ? "it has no GPU" : "it has " + join(names, ", ");
  }
  if (term.field->number != nullptr) {
    const std::optional<double> own = term.field->number(host);
    return own ? "it is " + number_text(*term.field, *own) : "this is not known";
  }
  std::vector<std::string> own;
  for (const std::string_view text : texts_of(*term.field, term.label, host))
    if (std::ranges::find(own, text) == own.end()) own.emplace_back(text);
  return own.empty() ? "this is not known" : "it is " + join(own, ", ");
}
}  // namespace

Subject subject_of(const HostFacts& host) {
  Subject subject;
  subject.name = host.name.value;
  subject.state = host.drained ? "drained" : host.reachable ? "answering" : "unreachable";
  subject.region = host.region_doubt.empty() ? std::string_view(host.region) : std::string_view();
  subject.site = host.site;
  subject.host_class = host.host_class;
  subject.engine = host.engine ? engine_name(*host.engine) : "auto";
  subject.price_per_hour = host.price_per_hour;
  subject.labels = &host.labels;
  subject.inventory = &*host.inventory;
  subject.figures = &host.figures;
  return subject;
}

bool Query::matches(const Subject& host) const {
  return std::ranges::all_of(cheapest_first_, [&](std::size_t at) { return holds(terms_[at], host); });
}

// Comparing the names of GPUs costs a hundred times as much as comparing numbers.
void Query::order_by_cost() {
  const auto cost = [this](std::size_t at) {
    const Field& field = *terms_[at].field;
    return field.number != nullptr ? 0 : field.unit == Unit::gpu_name || field.unit == Unit::gpu_spec ? 2 : 1;
  };
  cheapest_first_.resize(terms_.size());
  std::iota(cheapest_first_.begin(), cheapest_first_.end(), std::size_t{0});
  std::ranges::stable_sort(cheapest_first_, [&](std::size_t a, std::size_t b) { return cost(a) < cost(b); });
}

std::optional<Query::Refusal> Query::refusal(const Subject& host) const {
  std::optional<Refusal> passing;
  for (const Term& term : terms_) {
    if (holds(term, host)) continue;
    Refusal refusal{sanitize(term.source) + ": " + own_text(term, host), term.field->passing};
    if (!refusal.passing) return refusal;  // what waiting cannot cure is told first
    if (!passing) passing = std::move(refusal);
  }
  return passing;
}

bool Query::asks(FieldSource source) const {
  return std::ranges::any_of(terms_, [&](const Term& term) { return term.field->source == source; });
}

std::vector<std::string> Query::words_for(std::string_view field) const {
  std::vector<std::string> words;
  for (const Term& term : terms_)
    if (term.field->name == field && !term.negated) words.insert(words.end(), term.texts.begin(), term.texts.end());
  return words;
}

Result<Order> Order::parse(std::string_view text) {
  Order order;
  std::string words(text);
  std::ranges::replace(words, ' ', ',');
  for (const std::string& word : split(words, ',')) {
    if (trim(word).empty()) continue;
    Key key;
    std::string name(trim(word));
    if (name.ends_with('-') || name.ends_with('+')) {
      key.descending = name.back() == '-';
      name.pop_back();
    }
    key.field = find_field(name);
    if (key.field == nullptr || key.field->unit == Unit::gpu_spec) {
      const std::string near = nearest_field(name);
      return make_error(Code::usage,
                        "cannot order by '" + sanitize(name.substr(0, 40)) + "'" +
                            (near.empty() ? "" : "; did you mean " + near + "?"),
                        "man gridctl-query");
    }
    if (key.field->name == k_label_field) key.label = name.substr(6);
    if (order.keys_.size() == k_order_keys_max) return make_error(Code::usage, "ordered by more than 16 fields");
    order.keys_.push_back(std::move(key));
  }
  if (order.keys_.empty()) return make_error(Code::usage, "no field to order by", "gridctl provider ls -o price");
  return order;
}

bool Order::before(const Subject& a, const Subject& b) const {
  for (const Key& key : keys_) {
    if (key.field->number != nullptr) {
      const std::optional<double> x = key.field->number(a), y = key.field->number(b);
      if (x.has_value() != y.has_value()) return x.has_value();
      if (x && *x != *y) return key.descending ? *x > *y : *x < *y;
      continue;
    }
    const std::vector<std::string_view> x = texts_of(*key.field, key.label, a), y = texts_of(*key.field, key.label, b);
    if (x.empty() != y.empty()) return !x.empty();
    if (x != y) return key.descending ? y < x : x < y;
  }
  return false;
}

bool Order::asks(FieldSource source) const {
  return std::ranges::any_of(keys_, [&](const Key& key) { return key.field->source == source; });
}

}  // namespace gridctl::sched
