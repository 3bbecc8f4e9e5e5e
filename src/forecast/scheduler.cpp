// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "forecast/life.hpp"
#include "sched/coupling.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::forecast {

namespace {
constexpr int k_work_steps = 32;

// Returns megabits a second, like queries; a transfer without duration counts as unknown.
double link_of(double bytes, double seconds) { return seconds > 0 ? bytes * 8 / 1e6 / seconds : 0; }

sched::GangWish wish_of_gang(const job::Spec& spec) { return sched::wish_of(spec, sched::classify(spec)); }

// The scheduler adds the GPUs' own rate to it.
void set_rate(sched::HostFacts& facts, double rate_per_hour) {
  const double of_gpus = static_cast<double>(facts.inventory->gpus.size()) * sched::k_gpu_rate_per_hour;
  facts.figures["mtbf"] = 1 / std::max(rate_per_hour - of_gpus, 1e-9);
}
}  // namespace

HostModel together(const std::vector<const HostModel*>& hosts) {
  HostModel all = *hosts.front();
  for (auto host = hosts.begin() + 1; host != hosts.end(); ++host) {
    const HostModel& one = **host;
    all.rate_per_hour += one.rate_per_hour;
    all.facts.price_per_hour += one.facts.price_per_hour;
    all.speed = std::min(all.speed, one.speed);
    for (double HostModel::*span : {&HostModel::outage, &HostModel::start, &HostModel::upload, &HostModel::restore})
      all.*span = std::max(all.*span, one.*span);
    if (all.recorded == nullptr) all.recorded = one.recorded;
  }
  return all;
}

Scheduler::Scheduler(const Grid& on, const Choice& of) : grid(on), choice(of) {
  for (const HostModel& host : grid.hosts) {
    sched::HostFacts facts = host.facts;
    set_rate(facts, choice.by_price ? 0 : host.rate_per_hour);
    speeds_[facts.name] = choice.by_price ? 1 : host.speed;
    if (!choice.by_price) {
      facts.figures["start_time"] = host.start;
      facts.figures["inet_up"] = link_of(grid.state_bytes, host.upload);
      facts.figures["inet_down"] = link_of(grid.state_bytes, host.restore);
    }
    facts_.push_back(std::move(facts));
  }
}

void Scheduler::tell(const Now& now) {
  for (std::size_t i = 0; i < facts_.size(); ++i) {
    facts_[i].reachable = now.seen[i];
    if (!now.rates.empty() && !choice.by_price) set_rate(facts_[i], now.rates[i]);
  }
}

sched::JobKnowledge Scheduler::known(const Now& now) const {
  sched::JobKnowledge known = sched::knowledge_of(choice.spec);
  known.speeds = speeds_;
  if (choice.by_price) return known;
  known.task.work = std::max(now.work, 1.0);
  known.task.stall = grid.stall;
  known.task.state_bytes = grid.state_bytes;
  known.task.resumes = now.resumes;
  known.work_known = true;
  known.time_left = now.time_left;
  known.failures_max = now.failures_max;
  return known;
}

const Scheduler::Answer& Scheduler::place(const Now& now, const std::vector<job::Avoided>& avoided) {
  Now asked = now;
  Answer* answer = &asked_;
  if (!now.time_left && now.rates.empty()) {
    Question question{now.seen, {}, static_cast<int>(std::ceil(now.work / grid.work * k_work_steps)), now.resumes};
    for (const job::Avoided& one : avoided) question.avoided.push_back(one.host.value);
    asked.work = grid.work * question.work / k_work_steps;
    const auto [found, fresh] = known_.try_emplace(std::move(question));
    answer = &found->second;
    if (!fresh) return *answer;
  }
  answer->members.clear();
  answer->hosts.clear();
  if (is_gang()) {
    sched::GangDecision decision = decide_gang(asked, avoided);
    answer->could_ever_fit = decision.could_ever_fit;
    answer->reason =
        decision.plan ? sched::describe(*decision.plan) : sched::summary(decision, wish_of_gang(choice.spec));
    if (decision.plan)
      for (sched::Placement& member : decision.plan->members) take(*answer, std::move(member));
    return *answer;
  }
  sched::Decision decision = decide(asked, known(asked), avoided);
  answer->could_ever_fit = decision.could_ever_fit;
  answer->reason = decision.placement ? decision.placement->reason : sched::summary(decision);
  if (decision.placement) take(*answer, *std::move(decision.placement));
  return *answer;
}

void Scheduler::take(Answer& answer, sched::Placement to) const {
  const auto host = std::ranges::find_if(facts_, [&](const auto& one) { return one.name == to.host; });
  const int rank = static_cast<int>(answer.members.size());
  answer.hosts.push_back(static_cast<std::size_t>(host - facts_.begin()));
  answer.members.push_back(
      {rank, to.host, to.engine, std::move(to.gpu_uuids), to.cpus, to.memory_bytes, to.price_per_hour});
}

// Links between hosts that may never be registered are unknown and are assumed to suffice.
sched::GangDecision Scheduler::decide_gang(const Now& now, const std::vector<job::Avoided>& avoided) {
  tell(now);
  return sched::place_gang(choice.spec, wish_of_gang(choice.spec), facts_, sched::topology_of(facts_, {}), {}, avoided,
                           known(now));
}

sched::Decision Scheduler::decide(const Now& now, const sched::JobKnowledge& known,
                                  const std::vector<job::Avoided>& avoided, std::optional<std::size_t> leaving) {
  tell(now);
  if (leaving) facts_[*leaving].reachable = false;
  return sched::place(choice.spec, facts_, avoided, known);
}

sched::CurrentRun Scheduler::going_on(const sched::JobKnowledge& known, double work, const job::Member& on,
                                      std::size_t host) const {
  const sched::HostFacts& facts = facts_[host];
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : facts.inventory->gpus)
    if (std::ranges::find(on.gpu_uuids, gpu.uuid) != on.gpu_uuids.end()) gpus.push_back(&gpu);
  sched::HostGroup group = sched::group_of(facts, gpus);
  group.speed = speeds_.at(facts.name);
  sched::WorkEstimate rest = known.task;
  rest.work = std::max(work, 1.0);
  sched::CurrentRun present{facts.name, sched::to_finish(rest, group), group.failures_per_hour, known.task.silence,
                            rest.work};
  present.rest.start = present.rest.transfer = 0;
  return present;
}

}  // namespace gridctl::forecast
