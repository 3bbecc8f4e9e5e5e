// SPDX-License-Identifier: Apache-2.0
#include "job/setback.hpp"

#include <algorithm>

#include "base/names.hpp"

namespace gridctl::job {

namespace {
constexpr Duration k_unreached_max = std::chrono::seconds{10};  // a network that is back is used soon
constexpr std::size_t k_setbacks_max = 256;                     // of a job: the oldest are forgotten first

auto find_setback(std::vector<Setback>& list, const HostName& host, Cause cause) {
  return std::ranges::find_if(list, [&](const Setback& one) { return one.host == host && one.cause == cause; });
}
}  // namespace

Duration rest_after(int in_row) {
  if (in_row <= 1) return {};
  return std::min<Duration>(std::chrono::seconds{1ll << std::min(in_row - 2, 6)}, k_rest_max);
}

int note_setback(std::vector<Setback>& list, const HostName& host, Cause cause, const std::string& detail,
                 WallTime now) {
  Setback one{host, cause, 0, {}, {}};
  if (const auto found = find_setback(list, host, cause); found != list.end()) {
    one = std::move(*found);
    list.erase(found);
  }
  ++one.in_row;
  const Duration rest = std::min(rest_after(one.in_row), cause == Cause::unreached ? k_unreached_max : k_rest_max);
  one.until = now + rest;
  one.detail = detail;
  if (list.size() >= k_setbacks_max) list.erase(list.begin());
  list.push_back(one);
  return one.in_row;
}

void forget_setbacks(std::vector<Setback>& list, const HostName& host) {
  std::erase_if(list, [&](const Setback& one) { return one.host == host; });
}

void forget_setback(std::vector<Setback>& list, const HostName& host, Cause cause) {
  std::erase_if(list, [&](const Setback& one) { return one.host == host && one.cause == cause; });
}

int streak_anywhere(const std::vector<Setback>& list) {
  int most = 0;
  for (const Setback& one : list)
    if (one.host.empty()) most = std::max(most, one.in_row);
  return most;
}

// A wall clock that was set back must not extend a rest.
std::string why_resting(const std::vector<Setback>& list, const HostName& host, WallTime now) {
  const Setback* longest = nullptr;
  for (const Setback& one : list) {
    const Duration left = one.until - now;
    if (one.host == host && left > Duration{} && left <= k_rest_max &&
        (longest == nullptr || one.until > longest->until))
      longest = &one;
  }
  if (longest == nullptr || host.empty()) return "";
  return "the job failed to start there " + std::to_string(longest->in_row) + " times in a row (" + longest->detail +
         "); the next attempt is at " + format_rfc3339(longest->until);
}

}  // namespace gridctl::job
