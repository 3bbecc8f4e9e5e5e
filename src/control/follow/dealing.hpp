// SPDX-License-Identifier: Apache-2.0
// Divides a budget that several running jobs share into slices for their hosts, so that unreachable hosts never spend
// more than the budget together. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"

namespace gridctl::control {

// Tracks the amounts that attempts may still use up, by key. A slice counts as held until the host reports that it
// holds less.
class Dealing {
 public:
  struct Slice {
    double usd_per_hour = 0;
    BootTime told;   // until then it may run, as was told last
    BootTime until;  // until then it may run, as far as we can know
    bool assumed = false;  // nobody here has told it anything, and it has not told us either
  };
  // The attempt is already running, and its limits are unknown: it may hold everything until its lease ends.
  void assume(const std::string& key, double usd_per_hour, BootTime lease_ends);
  // Tells the attempt that it may run until then.
  void tell(const std::string& key, double usd_per_hour, BootTime until);
  // The host reports until when the attempt may run; nullopt: it keeps to its last limit, as far as we know.
  void reported(const std::string& key, std::optional<BootTime> until);
  void forget(const std::string& key) { slices_.erase(key); }
  template <class Keep>
  void keep_only(Keep keep) {
    std::erase_if(slices_, [&](const auto& entry) { return !keep(entry.first); });
  }
  [[nodiscard]] bool knows(const std::string& key) const { return slices_.contains(key); }
  // Returns the USD that this attempt may still cost from now on.
  [[nodiscard]] double held(const std::string& key, BootTime now) const;
  // Returns how long the attempt may still run by a limit it is known to have, from us or from its own report; nullopt:
  // the limit is only assumed.
  [[nodiscard]] std::optional<Duration> known_left(const std::string& key, BootTime now) const;

 private:
  std::map<std::string, Slice> slices_;
};

// Returns how long one more slice lasts: a share of `left_usd` in proportion to the price of all, but never more than
// the others leave free, and no longer than `most`.
[[nodiscard]] Duration slice_of(double left_usd, double held_by_others_usd, double usd_per_hour,
                                double usd_per_hour_of_all, Duration most);

}  // namespace gridctl::control
