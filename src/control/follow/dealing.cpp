// SPDX-License-Identifier: Apache-2.0
#include "control/follow/dealing.hpp"

#include <algorithm>

namespace gridctl::control {

void Dealing::assume(const std::string& key, double usd_per_hour, BootTime lease_ends) {
  slices_.try_emplace(key, Slice{usd_per_hour, BootTime{}, lease_ends, true});
}

void Dealing::tell(const std::string& key, double usd_per_hour, BootTime until) {
  Slice& slice = slices_.try_emplace(key, Slice{usd_per_hour, until, until}).first->second;
  slice.usd_per_hour = usd_per_hour;
  slice.assumed = false;
  slice.told = until;
  slice.until = std::max(slice.until, until);
}

void Dealing::reported(const std::string& key, std::optional<BootTime> until) {
  const auto found = slices_.find(key);
  if (found == slices_.end()) return;
  Slice& slice = found->second;
  if (!slice.assumed) slice.until = std::max(slice.told, until.value_or(slice.told));
  else if (until) slice.until = *until;
  slice.assumed = false;
}

std::optional<Duration> Dealing::known_left(const std::string& key, BootTime now) const {
  const auto found = slices_.find(key);
  if (found == slices_.end() || found->second.assumed) return std::nullopt;
  return std::max(found->second.until - now, Duration{});
}

double Dealing::held(const std::string& key, BootTime now) const {
  const auto found = slices_.find(key);
  if (found == slices_.end()) return 0;
  return found->second.usd_per_hour * std::max(seconds(found->second.until - now), 0.0) / 3600;
}

Duration slice_of(double left_usd, double held_by_others_usd, double usd_per_hour, double usd_per_hour_of_all,
                  Duration most) {
  if (usd_per_hour <= 0) return most;
  const double share = left_usd * usd_per_hour / std::max(usd_per_hour_of_all, usd_per_hour);
  const double usd = std::max(std::min(share, left_usd - held_by_others_usd), 0.0);
  const double hours = usd / usd_per_hour;
  if (hours * 3600 >= seconds(most)) return most;
  return std::chrono::nanoseconds{static_cast<std::int64_t>(hours * 3.6e12)};
}

}  // namespace gridctl::control
