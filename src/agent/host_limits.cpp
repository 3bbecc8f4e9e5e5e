// SPDX-License-Identifier: Apache-2.0
#include "agent/host_limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/numbers.hpp"
#include "base/text.hpp"

namespace gridctl::agent {

namespace {

constexpr std::int64_t k_same_ns = 50'000'000;
constexpr std::int64_t k_far_ns = std::int64_t{1} << 61;  // keeps sums of times far from overflow

BootTime later(BootTime from, Duration by) { return {std::min(from.ns + std::min(by.count(), k_far_ns), k_far_ns)}; }

bool near(std::optional<std::int64_t> one, std::optional<std::int64_t> other) {
  return one.has_value() == other.has_value() && (!one || std::abs(*one - *other) < k_same_ns);
}

std::optional<std::int64_t> ns(std::optional<BootTime> time) {
  return time ? std::optional{time->ns} : std::nullopt;
}

std::string word(std::optional<std::int64_t> number) { return number ? std::to_string(*number) : "-"; }

}  // namespace

HostLimits limits_at_start(const wire::Allowance& allowance, BootTime echo) {
  HostLimits limits{{}, allowance.run, allowance.run_limit, {}};
  if (allowance.time) limits.time_until = later(echo, *allowance.time);
  return limits;
}

HostLimits limits_from(const wire::Allowance& allowance, BootTime echo) {
  HostLimits limits{{}, {}, allowance.run_limit, {}};
  if (allowance.run) limits.run_until = later(echo, *allowance.run);
  if (allowance.time) limits.time_until = later(echo, *allowance.time);
  return limits;
}

std::optional<LimitDue> due_of(const HostLimits& limits, std::optional<BootTime> running_since) {
  std::optional<LimitDue> due;
  const auto consider = [&](std::optional<BootTime> at, const std::string& limit) {
    if (at && (!due || *at < due->at)) due = LimitDue{*at, limit};
  };
  consider(limits.run_until, limits.run_limit);
  if (limits.run_for && running_since) consider(later(*running_since, *limits.run_for), limits.run_limit);
  consider(limits.time_until, "deadline");
  return due;
}

std::int64_t allowed_ms(const HostLimits& limits, std::optional<BootTime> running_since, BootTime now) {
  std::optional<Duration> left = limits.run_for;
  if (left && running_since) left = later(*running_since, *limits.run_for) - now;
  if (limits.run_until) left = *limits.run_until - now;
  return left ? std::max<std::int64_t>(left->count(), 0) / 1'000'000 : -1;
}

bool nearly_equal(const HostLimits& one, const HostLimits& other) {
  return one.run_limit == other.run_limit && one.run_for == other.run_for &&
         near(ns(one.run_until), ns(other.run_until)) && near(ns(one.time_until), ns(other.time_until));
}

std::string to_text(const HostLimits& limits) {
  const auto run_for = limits.run_for ? std::optional{limits.run_for->count()} : std::nullopt;
  return word(ns(limits.run_until)) + " " + word(run_for) + " " + word(ns(limits.time_until)) + " " +
         (limits.run_limit.empty() ? "-" : limits.run_limit) + "\n";
}

std::optional<HostLimits> parse_limits(std::string_view text) {
  const std::vector<std::string> words = split(trim(text), ' ');
  if (words.size() != 4) return std::nullopt;
  bool sound = true;
  const auto number = [&](const std::string& one) -> std::optional<std::int64_t> {
    if (one == "-") return std::nullopt;
    const auto value = parse_number<std::int64_t>(one);
    sound = sound && value;
    return value;
  };
  HostLimits limits;
  if (const auto value = number(words[0])) limits.run_until = BootTime{*value};
  if (const auto value = number(words[1])) limits.run_for = Duration{*value};
  if (const auto value = number(words[2])) limits.time_until = BootTime{*value};
  if (words[3] != "-") limits.run_limit = words[3];
  return sound ? std::optional{limits} : std::nullopt;
}

}  // namespace gridctl::agent
