// SPDX-License-Identifier: Apache-2.0
// Finds the best set of N hosts among those that may be together. Inside sched only. Exact branch and bound; the
// objective grows with the price, the failure rate, the start time and the slowness of links, and falls with the speed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "sched/candidate.hpp"

namespace gridctl::sched {

class GangSearch {
 public:
  struct Found {
    std::vector<std::size_t> members;  // in the order of add()
    HostGroup group;
    Estimate estimate;
    bool exact = true;
  };
  GangSearch(job::Optimize optimize, const JobKnowledge& known, int members)
      : optimize_(optimize), task_(known.task), wanted_(static_cast<std::size_t>(members)) {}
  void add(const Candidate& candidate);
  // Returns nullopt if no set of that size is free of conflicts. `conflict` is symmetric.
  [[nodiscard]] std::optional<Found> best(const std::function<bool(std::size_t, std::size_t)>& conflict);

 private:
  struct One {
    std::size_t index;
    HostGroup group;  // alone; unknown rates of links as infinite
    std::string name;
  };
  struct Sum;
  [[nodiscard]] bool dominated(std::size_t at, bool (*better)(const One&, const One&)) const;
  void leave_out_dominated();
  void descend(std::size_t from, const Sum& sum);
  [[nodiscard]] Aim aim_of_set(const HostGroup& group) const;
  [[nodiscard]] HostGroup hoped(std::size_t from, const Sum& sum) const;

  job::Optimize optimize_;
  WorkEstimate task_;
  std::size_t wanted_;
  std::vector<One> ones_;  // by price, then name
  // Hold, over ones_[i..], sums of prices from the first on, least failure rate and greatest speed.
  std::vector<double> price_sum_, least_failures_, most_speed_;
  const std::function<bool(std::size_t, std::size_t)>* conflict_ = nullptr;
  bool conflicts_ = false;  // there are any
  std::vector<std::size_t> chosen_, best_;
  Aim best_aim_{};
  std::uint64_t steps_ = 0;
};

}  // namespace gridctl::sched
