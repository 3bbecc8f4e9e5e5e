// SPDX-License-Identifier: Apache-2.0
#include "sched/geo/residency.hpp"

#include <algorithm>

#include "base/host_words.hpp"
#include "base/text.hpp"

namespace gridctl::sched {

namespace {
bool region_is(std::string_view region, std::string_view wanted) {
  const std::string is = lower(region), want = lower(wanted);
  return is == want || is.starts_with(want + "-");
}
}  // namespace

bool is_lent(std::string_view host_class, const std::map<std::string, std::string>& labels) {
  const auto label = labels.find("lent");
  return host_class == k_class_market || (label != labels.end() && !is_one_of(label->second, {"false"}));
}

std::string region_refusal(const job::Constraints& wanted, const std::string& region) {
  const auto is_it = [&](const std::string& one) { return region_is(region, one); };
  if (!wanted.region_in.empty() && std::ranges::none_of(wanted.region_in, is_it))
    return (region.empty() ? "its region is unknown" : "it is in " + region) + ", wanted " +
           join(wanted.region_in, ", ");
  if (!wanted.region_not.empty() && region.empty())
    return "its region is unknown, and it must not be in " + join(wanted.region_not, ", ");
  if (std::ranges::any_of(wanted.region_not, is_it)) return "it is in " + region + ", which the job excludes";
  return "";
}

std::string residency_refusal(const job::Constraints& wanted, const std::string& region, bool lent) {
  if (std::string why = region_refusal(wanted, region); !why.empty()) return why;
  return wanted.is_private && lent ? "it is owned by others, and the job is private" : "";
}

}  // namespace gridctl::sched
