// SPDX-License-Identifier: Apache-2.0
// Places jobs on several hosts: all members at once, or none.
#include <algorithm>
#include <iterator>

#include "control/fleet/host_facts.hpp"
#include "control/follow/placement.hpp"

namespace gridctl::control {

std::vector<job::Member> GangOffer::members() const {
  std::vector<job::Member> members;
  if (!decision.plan) return members;
  for (const sched::Placement& one : decision.plan->members) {
    members.push_back(member_of(one));
    members.back().rank = static_cast<int>(members.size()) - 1;
  }
  return members;
}

Result<GangOffer> Placement::offer(const TrackedJob& job, const Question& question, const HostName& leaving,
                                   bool forgive) const {
  TRY_ASSIGN(const std::vector<sched::PairLink> links, pair_links(world_.records));
  const job::Spec& spec = question.spec;
  std::vector<sched::HostFacts> others;
  if (!leaving.empty())
    std::copy_if(question.hosts.begin(), question.hosts.end(), std::back_inserter(others),
                 [&](const sched::HostFacts& host) { return host.name != leaving; });
  const std::vector<sched::HostFacts>& hosts = leaving.empty() ? question.hosts : others;
  GangOffer offer{{}, sched::wish_of(spec, job.coupling)};
  offer.decision = sched::place_gang(spec, offer.wish, hosts, sched::topology_of(hosts, links), links,
                                     forgive ? std::vector<sched::Avoid>{} : job.state().avoided, question.known);
  return offer;
}

// Returns a gang with at least as many members from the preferred hosts.
std::optional<GangOffer> Placement::preferred(const TrackedJob& job, const Question& question,
                                              const GangOffer& otherwise) const {
  if (!question.preference || question.preference->members.empty()) return std::nullopt;
  const std::vector<HostName>& members = question.preference->members;
  Question among = question;
  std::erase_if(among.hosts, [&](const sched::HostFacts& host) {
    return std::find(members.begin(), members.end(), host.name) == members.end();
  });
  Result<GangOffer> offered = offer(job, among);
  const auto& plan = otherwise.decision.plan;
  if (!offered || !offered->decision.plan || (plan && offered->decision.plan->members.size() < plan->members.size()))
    return std::nullopt;
  return *std::move(offered);
}

void Placement::place_gang(TrackedJob& job, const Question& question) {
  Result<GangOffer> offered = offer(job, question);
  if (!offered) return report(offered.error(), "while placing");
  std::string because;
  if (std::optional<GangOffer> chosen = preferred(job, question, *offered)) {
    because = "; " + question.preference->because;
    offered = *std::move(chosen);
  }
  const sched::GangDecision& decision = offered->decision;
  std::vector<std::string> lines = sched::explain(decision, offered->wish);
  if (!decision.plan)
    return not_placed(job, question, decision.could_ever_fit, sched::summary(decision, offered->wish),
                      std::move(lines));
  std::optional<job::Expected> expected;
  if (decision.work_known && !decision.plan->estimate.is_never())
    expected = job::Expected{decision.plan->estimate.takes(), decision.plan->estimate.cost()};
  begin(job, offered->members(), sched::describe(*decision.plan) + because, expected, std::move(lines));
}

}  // namespace gridctl::control
