// SPDX-License-Identifier: Apache-2.0
// While jobs run on hosts that cost: whether another one, that came up or became free, is worth a move.
#include <algorithm>
#include <utility>

#include "control/follow/following.hpp"
#include "control/follow/job_knowledge.hpp"
#include "control/follow/supervisor.hpp"
#include "sched/cheaper.hpp"

namespace gridctl::control {

namespace {
constexpr Duration k_prices_pause = std::chrono::seconds{1};       // between two jobs: the scheduler is asked each time
constexpr Duration k_prices_pause_job = std::chrono::seconds{10};  // between two looks at one
}  // namespace

// One job in each round, the one that was not looked at for longest: thousands of them cost no more than one.
void Supervisor::judge_prices(BootTime now) {
  if (now < next_prices_) return;
  next_prices_ = now + k_prices_pause;
  follow_prices();
  JobPtr longest;
  for (const auto& [id, job] : jobs_) {
    const auto* running = std::get_if<job::Running>(&job->state.phase);
    if (running == nullptr || running->move || running->attempt.members.front().price_per_hour <= 0) continue;
    if (now - job->priced_at < k_prices_pause_job) continue;
    if (!longest || job->priced_at < longest->priced_at) longest = job;
  }
  if (!longest) return;
  longest->priced_at = now;
  const auto host = hosts_.find(longest->state.attempt()->host().value);
  if (host == hosts_.end() || is_drained(*host->second) || !host->second->monitor->is_up()) return;
  judge_price(longest, *host->second);
}

// What runs costs what its host costs now.
void Supervisor::follow_prices() {
  for (const auto& [id, job] : std::map<std::string, JobPtr>(jobs_)) {
    const job::Attempt* attempt = job->unsure ? nullptr : job->state.attempt();
    const auto host = attempt == nullptr ? hosts_.end() : hosts_.find(attempt->host().value);
    if (host == hosts_.end() || std::holds_alternative<job::Collecting>(job->state.phase)) continue;
    const double price = host->second->provider.price_per_hour;
    if (attempt->members.front().price_per_hour == price) continue;
    job->priced_at = {};
    apply(job, job::PriceChanged{attempt->epoch, price});
  }
}

void Supervisor::judge_price(const JobPtr& job, const Host& host) {
  const Result<registry::Job> row = registry_.job(job->state.id);
  if (!row) return report(row.error(), "while looking for a cheaper host");
  const auto cheaper = cheaper_than_here(*job, *row, host);
  if (!cheaper || !cheaper->why) return;
  const Epoch epoch = job->state.attempt()->epoch;
  apply(job, job::MoveRequested{epoch,
                                std::string(job::k_for_less),
                                std::max(job->saved[epoch.value], job->listed[epoch.value]),
                                {},
                                *cheaper->why});
}

std::optional<Supervisor::Cheaper> Supervisor::cheaper_than_here(const Following& job, const registry::Job& row,
                                                                 const Host& host) {
  if (!sched::may_move_for_less(row.spec)) return std::nullopt;
  std::vector<sched::HostFacts> hosts = host_facts(job, row.spec.recovery.lost_after, {});
  const sched::JobKnowledge known = known_now(row, hosts);
  const Result<std::optional<sched::CurrentRun>> present = present_of(registry_, row, hosts, clock_.wall());
  if (!present) report(present.error(), "while looking for a cheaper host");
  if (!present || !*present) return std::nullopt;
  Cheaper found;
  found.elsewhere = decide(job, row.spec, sched::for_less(known, **present), std::move(hosts), &host);
  found.why = sched::judge_cheaper(**present, found.elsewhere, job.state.avoided);
  return found;
}

}  // namespace gridctl::control
