// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>

#include "forecast/life.hpp"
#include "sched/reliability.hpp"

namespace gridctl::forecast {

namespace {
constexpr int k_work_steps = 32;

// In megabits a second, as queries have it; what takes no time is as good as not known.
double link_of(double bytes, double seconds) { return seconds > 0 ? bytes * 8 / 1e6 / seconds : 0; }

// The scheduler adds the GPUs' own rate to it.
void set_rate(sched::HostFacts& facts, double rate_per_hour) {
  const double of_gpus = static_cast<double>(facts.inventory.gpus.size()) * sched::k_gpu_rate_per_hour;
  facts.figures["mtbf"] = 1 / std::max(rate_per_hour - of_gpus, 1e-9);
}
}  // namespace

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
  sched::Decision decision = decide(asked, known(asked), avoided);
  answer->member.reset();
  answer->could_ever_fit = decision.could_ever_fit;
  answer->reason = decision.placement ? decision.placement->reason : sched::summary(decision);
  if (!decision.placement) return *answer;
  sched::Placement& to = *decision.placement;
  const auto host = std::find_if(facts_.begin(), facts_.end(), [&](const auto& one) { return one.name == to.host; });
  answer->host = static_cast<std::size_t>(host - facts_.begin());
  answer->member =
      job::Member{0, to.host, to.engine, std::move(to.gpu_uuids), to.cpus, to.memory_bytes, to.price_per_hour};
  return *answer;
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
  for (const Gpu& gpu : facts.inventory.gpus)
    if (std::find(on.gpu_uuids.begin(), on.gpu_uuids.end(), gpu.uuid) != on.gpu_uuids.end()) gpus.push_back(&gpu);
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
