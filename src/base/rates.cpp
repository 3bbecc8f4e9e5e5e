// SPDX-License-Identifier: Apache-2.0
#include "base/rates.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl {

namespace {

constexpr std::uint64_t k_hour_ms = 3'600'000, k_gigabyte = 1'000'000'000;
constexpr std::size_t k_decimals = 6;
constexpr std::string_view k_free_rates = "free";

// Neither product overflows within the limits of the header.
std::int64_t share(std::int64_t rate, std::uint64_t amount, std::uint64_t unit) {
  const auto whole = static_cast<std::int64_t>(amount / unit), rest = static_cast<std::int64_t>(amount % unit);
  return rate * whole + rate * rest / static_cast<std::int64_t>(unit);
}

struct RateName {
  std::string_view name;
  std::int64_t Rates::*rate;
};
constexpr std::array k_rate_names{RateName{"gpu", &Rates::gpu_hour}, RateName{"cpu", &Rates::cpu_hour},
                                  RateName{"traffic", &Rates::gigabyte}, RateName{"minimum", &Rates::minimum}};

std::optional<std::int64_t> parse_usd(std::string_view text) {
  const std::size_t point = text.find('.');
  const std::string_view behind = point == std::string_view::npos ? "" : text.substr(point + 1);
  if (behind.size() > k_decimals || (point != std::string_view::npos && behind.empty())) return std::nullopt;
  std::string digits(text.substr(0, point));
  if (digits.empty() || digits.size() > k_decimals) return std::nullopt;
  digits += std::string(behind) + std::string(k_decimals - behind.size(), '0');
  if (!std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; })) return std::nullopt;
  const auto micro = parse_number<std::int64_t>(digits);
  return micro && *micro <= k_rate_max ? micro : std::nullopt;
}

}  // namespace

std::int64_t charge(const Rates& rates, const MeteredUse& use) {
  if (!use.ran()) return 0;
  const std::int64_t sum = share(rates.gpu_hour, use.gpu_ms, k_hour_ms) + share(rates.cpu_hour, use.cpu_ms, k_hour_ms) +
                           share(rates.gigabyte, use.bytes_up + use.bytes_down, k_gigabyte);
  return std::max(sum, rates.minimum);
}

std::int64_t hourly(const Rates& rates, std::uint64_t gpus, std::uint64_t cpus) {
  constexpr std::uint64_t k_most = 1'000'000;
  return rates.gpu_hour * static_cast<std::int64_t>(std::min(gpus, k_most)) + rates.cpu_hour * static_cast<std::int64_t>(std::min(cpus, k_most));
}

Result<Rates> parse_rates(std::string_view text) {
  Rates rates;
  if (text == k_free_rates) return rates;
  for (const std::string& part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const auto known = std::ranges::find(k_rate_names, std::string_view(part).substr(0, equals), &RateName::name);
    const auto usd = equals == std::string::npos ? std::nullopt : parse_usd(std::string_view(part).substr(equals + 1));
    if (known == k_rate_names.end() || !usd)
      return make_error(
          Code::usage,
          "a price is 'free', or the USD for an hour of a GPU or a processor, for a gigabyte of traffic "
          "and for the shortest job, such as gpu=0.25,cpu=0.01,traffic=0.05,minimum=0.02; each at most 1000");
    rates.*known->rate = *usd;
  }
  return rates;
}

std::string rates_text(const Rates& rates) {
  std::string text;
  for (const RateName& one : k_rate_names)
    if (rates.*one.rate != 0) text += (text.empty() ? "" : ",") + std::string(one.name) + "=" + usd_text(rates.*one.rate);
  return text.empty() ? std::string(k_free_rates) : text;
}

std::string usd_text(std::int64_t micro) {
  constexpr std::size_t k_least = 2;
  const bool negative = micro < 0;
  const auto size = negative ? -static_cast<std::uint64_t>(micro) : static_cast<std::uint64_t>(micro);
  std::string behind = std::to_string(size % k_micro);
  behind.insert(0, k_decimals - behind.size(), '0');
  while (behind.size() > k_least && behind.back() == '0') behind.pop_back();
  return (negative ? "-" : "") + std::to_string(size / k_micro) + "." + behind;
}

}  // namespace gridctl
