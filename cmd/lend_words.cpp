// SPDX-License-Identifier: Apache-2.0
#include "cmd/lend_words.hpp"

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
constexpr int k_hour = 60, k_hours = 24;

std::optional<int> minute_of(std::string_view text) {
  const std::size_t colon = text.find(':');
  const auto hour = parse_number<int>(trim(text.substr(0, colon)));
  const auto minute = colon == std::string_view::npos ? std::optional{0} : parse_number<int>(trim(text.substr(colon + 1)));
  if (!hour || !minute || *hour < 0 || *hour > k_hours || *minute < 0 || *minute >= k_hour) return std::nullopt;
  const int all = *hour * k_hour + *minute;
  if (all > k_hours * k_hour) return std::nullopt;
  return all % (k_hours * k_hour);
}

std::string clock_text(int minute) {
  const auto two = [](int number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return two(minute / k_hour) + ":" + two(minute % k_hour);
}
}  // namespace

Result<std::optional<Hours>> hours_of(const Parsed& parsed) {
  if (!parsed.has("hours")) return std::optional<Hours>{};
  const std::string text = parsed.value("hours");
  if (text == "always") return std::optional<Hours>{Hours{}};
  const std::size_t dash = text.find('-');
  const auto from = minute_of(std::string_view(text).substr(0, dash));
  const auto to = dash == std::string::npos ? std::nullopt : minute_of(std::string_view(text).substr(dash + 1));
  if (!from || !to) return make_error(Code::usage, "--hours takes FROM-TO, such as 23:00-07:00, or 'always'");
  return std::optional<Hours>{Hours{*from, *to}};
}

Result<void> describe_terms(const Parsed& parsed, wire::GuestTerms& terms) {
  TRY_ASSIGN(const auto hours, hours_of(parsed));
  if (hours) {
    terms.from_minute = hours->from;
    terms.to_minute = hours->to;
  }
  if (parsed.has("reclaim")) terms.reclaim = parsed.value("reclaim") == "yes";
  if (!parsed.has("egress")) return {};
  TRY_ASSIGN(terms.egress, wire::parse_egress(parsed.value("egress")));
  return {};
}

std::string hours_text(const wire::GuestTerms& terms) {
  if (!terms.from_minute || !terms.to_minute || *terms.from_minute == *terms.to_minute) return "always";
  return clock_text(*terms.from_minute) + "-" + clock_text(*terms.to_minute);
}

}  // namespace gridctl::cmd
