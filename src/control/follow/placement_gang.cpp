// SPDX-License-Identifier: Apache-2.0
// Jobs on several hosts: all members are placed at once, or none is.
#include <algorithm>

#include "control/fleet/host_facts.hpp"
#include "control/follow/placement.hpp"
#include "sched/gang.hpp"

namespace gridctl::control {

namespace {

std::string summary(const sched::GangDecision& decision, int wanted) {
  std::string text = std::to_string(decision.fitting) + (decision.fitting == 1 ? " provider" : " providers") +
                     " could take a member now, " + std::to_string(wanted) + " are needed";
  for (const std::string& pool : decision.short_pools) text += "; " + pool;
  return text;
}

}  // namespace

void Placement::place_gang(TrackedJob& job, const Question& question) {
  const Result<std::vector<sched::PairLink>> links = pair_links(world_.records);
  if (!links) return report(links.error(), "while placing");
  const job::Spec& spec = question.spec;
  const sched::GangWish wish = sched::wish_of(spec, sched::classify(spec));
  const sched::GangDecision decision =
      sched::place_gang(spec, wish, question.hosts, sched::topology_of(question.hosts, *links), *links,
                        job.state().avoided, question.known);
  std::vector<std::string> lines = sched::explain(decision, wish);
  if (!decision.plan)
    return not_placed(job, question, decision.could_ever_fit, summary(decision, wish.members), std::move(lines));
  std::vector<job::Member> members;
  for (const sched::Placement& one : decision.plan->members) {
    members.push_back(member_of(one));
    members.back().rank = static_cast<int>(members.size()) - 1;
  }
  std::optional<job::Expected> expected;
  if (decision.work_known && !decision.plan->estimate.is_never())
    expected = job::Expected{decision.plan->estimate.takes(), decision.plan->estimate.cost()};
  begin(job, std::move(members), sched::describe(*decision.plan), expected, std::move(lines));
}

}  // namespace gridctl::control
