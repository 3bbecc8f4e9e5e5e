// SPDX-License-Identifier: Apache-2.0
// Many jobs placed at once on one picture of the hosts: each takes its share of what is left, as if place() had been
// asked for one after the other. Jobs that want the same share one ranking, which is worked out once: a
// backlog of ten thousand jobs must not rank ten thousand hosts each time. Pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sched/gang.hpp"
#include "sched/place.hpp"

namespace gridctl::sched {

class Round {
 public:
  explicit Round(std::vector<HostFacts> hosts);
  ~Round();
  // The host that place() would choose, or none that is free now. What it takes is gone for those that follow.
  [[nodiscard]] std::optional<Placement> place(const job::Spec& spec, const JobKnowledge& known,
                                               const std::vector<Avoid>& avoided);
  // All members or none: nothing is taken for a gang that is not whole.
  [[nodiscard]] std::optional<GangPlan> place_gang(const job::Spec& spec, const GangWish& wish,
                                                   std::span<const PairLink> links, const JobKnowledge& known,
                                                   const std::vector<Avoid>& avoided);
  [[nodiscard]] const std::vector<HostFacts>& hosts() const { return hosts_; }

 private:
  struct Ranking;  // hosts that could take jobs of one kind, best first
  Ranking& ranking_of(const job::Spec& spec, const JobKnowledge& known, const std::vector<Avoid>& avoided);

  std::vector<HostFacts> hosts_;
  std::map<std::string, std::unique_ptr<Ranking>> rankings_;
};

}  // namespace gridctl::sched
