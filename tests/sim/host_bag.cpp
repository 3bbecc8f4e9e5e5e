// SPDX-License-Identifier: Apache-2.0
// A worker of a bag on a simulated host: the agent's own queue, and a task after the other. What it was told and what it
// has done stand in its folder, which outlives the agents and the power.
#include "host.hpp"
#include "registry/registry.hpp"

namespace gridctl::sim {

void Host::run_tasks(const Key& key, Payload* payload) {
  Folder* mine = folder(key);
  if (mine == nullptr || !payload->alive) return;
  if (!mine->task) {
    const std::optional<agent::BagTask> next = mine->queue.next();
    if (!next) return void(world_.after(k_s / 10, world_.host_node(index_), [=, this] { run_tasks(key, payload); }));
    mine->task = next;
  }
  const Nanos takes = world_.rng.between(1, std::max<Nanos>(2 * world_.options.task_takes, 2));
  world_.after(takes, world_.host_node(index_), [=, this] {
    Folder* now = folder(key);
    if (now == nullptr || !payload->alive || !now->task) return;
    wire::TaskResult result;
    result.index = now->task->index;
    result.order = now->task->order;
    result.ms = static_cast<std::uint32_t>(takes / k_ms);
    result.exit_code = world_.rng.chance(world_.options.task_fails) ? 1 : 0;
    now->task.reset();
    now->results.push_back(result);
    const JobId job{std::get<1>(key)};
    ++world_.task_runs[{job.value, result.index}];
    if (result.succeeded())
      world_.tasks_done[registry::twin_number(job) > 1 ? registry::leader_of(job).value : job.value].insert(result.index);
    run_tasks(key, payload);
  });
}

wire::BagReply Host::answer_bag(int laptop, const wire::BagRequest& request) {
  wire::BagReply reply;
  for (const wire::BagAsk& ask : request.workers) {
    wire::BagTold told{ask.job, ask.epoch};
    Folder* mine = folder({laptop, ask.job.value, ask.epoch.value});
    if (mine == nullptr) {
      told.error = make_error(Code::not_found, "there is no such attempt");
      reply.workers.push_back(told);
      continue;
    }
    for (std::size_t i = 0; i < ask.orders.size(); ++i)
      if (ask.orders_from + i == mine->queue.orders())
        for (const wire::TaskResult& one : mine->queue.take(ask.orders[i])) mine->results.push_back(one);
    told.orders_seen = mine->queue.orders();
    told.results_from = std::min<std::uint64_t>(ask.results_from, mine->results.size());
    told.results_end = mine->results.size();
    for (std::uint64_t i = told.results_from; i < told.results_end && told.results.size() < ask.results_max; ++i)
      told.results.push_back(mine->results[i]);
    if (mine->task) told.running = {mine->task->index};
    told.queued = mine->queue.size();
    told.over = mine->status && mine->status->phase == wire::AttemptPhase::ended;
    reply.workers.push_back(std::move(told));
  }
  return reply;
}

}  // namespace gridctl::sim
