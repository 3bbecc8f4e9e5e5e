// SPDX-License-Identifier: Apache-2.0
// A budget that several running jobs share is dealt out to their hosts in slices, so that hosts which nobody can reach
// never spend more than the budget together. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"

namespace gridctl::control {

// The amounts that attempts may still use up, by key. A slice counts as held until the host reports that it holds less.
class Dealing {
 public:
  struct Slice {
    double usd_per_hour = 0;
    BootTime told;   // until then it may run, as was told last
    BootTime until;  // until then it may run, as far as we can know
    bool assumed = false;  // nobody here has told it anything, and it has not told us either
  };
  // It runs already, and nobody knows what it was told: it may hold all until its lease ends.
  void assume(const std::string& key, double usd_per_hour, BootTime lease_ends);
  // It is told that it may run until then.
  void tell(const std::string& key, double usd_per_hour, BootTime until);
  // Its host says until when it may run; nullopt: it keeps to what it was told, as far as we know.
  void reported(const std::string& key, std::optional<BootTime> until);
  void forget(const std::string& key) { slices_.erase(key); }
  template <class Keep>
  void keep_only(Keep keep) {
    std::erase_if(slices_, [&](const auto& entry) { return !keep(entry.first); });
  }
  [[nodiscard]] bool knows(const std::string& key) const { return slices_.contains(key); }
  // USD that this one may still cost from now on.
  [[nodiscard]] double held(const std::string& key, BootTime now) const;
  // How long it may still run as it knows itself, from us or by its own word; nullopt: it is only assumed.
  [[nodiscard]] std::optional<Duration> known_left(const std::string& key, BootTime now) const;

 private:
  std::map<std::string, Slice> slices_;
};

// How long one more slice lasts: a share of `left_usd` by its part of the price of all, but never more than what the
// others do not hold already, and no longer than `most`.
[[nodiscard]] Duration slice_of(double left_usd, double held_by_others_usd, double usd_per_hour,
                                double usd_per_hour_of_all, Duration most);

}  // namespace gridctl::control
