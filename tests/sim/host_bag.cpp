// SPDX-License-Identifier: Apache-2.0
// A worker of a bag on a simulated host: the agent's own queue, and one task after the other. Orders, results and output
// stand in its folder, which outlives the agents; what was not synced may go with the power.
#include <algorithm>

#include "bag_truth.hpp"
#include "host.hpp"

namespace gridctl::sim {

namespace {
// Always the same tasks of a bag.
bool is_drawn(std::uint64_t seed, const std::string& bag, std::uint64_t index, double share) {
  Random random(seed * 0x9E3779B97F4A7C15u + std::hash<std::string>{}(bag) + index * 0xBF58476D1CE4E5B9u);
  return random.chance(share);
}
}  // namespace

void Host::record_task(const Key& key, const wire::TaskResult& result) {
  folder(key)->bag.results.push_back(result);
  world_.bags->ran({std::get<1>(key)}, Epoch{std::get<2>(key)}, result);
}

void Host::run_tasks(const Key& key, Payload* payload) {
  Folder* mine = folder(key);
  if (mine == nullptr || !payload->alive) return;
  WorkerFiles& bag = mine->bag;
  while (bag.read < bag.orders.size())
    for (const wire::TaskResult& one : bag.queue.take(bag.orders[bag.read++])) record_task(key, one);
  if (bag.task) return;
  bag.task = bag.queue.next();
  if (!bag.task) return;
  const Options& o = world_.options;
  const std::string leader = BagTruth::worker_of({std::get<1>(key)}).first;
  const bool kills = is_drawn(o.seed + 1, leader, bag.task->index, o.task_kills);
  const bool fails = world_.rng.chance(o.task_fails) || is_drawn(o.seed, leader, bag.task->index, o.task_poison);
  const Nanos takes = world_.rng.between(1, std::max<Nanos>(2 * o.task_takes, 2)) * (index_ == 0 ? o.task_slow : 1);
  world_.after(takes, world_.host_node(index_), [=, this] { task_over(key, payload, takes, fails, kills); });
}

void Host::task_over(const Key& key, Payload* payload, Nanos took, bool fails, bool kills) {
  Folder* mine = folder(key);
  if (mine == nullptr || !payload->alive || !mine->bag.task) return;
  WorkerFiles& bag = mine->bag;
  if (kills) {
    const agent::ExitRecord record{"run", -1, 9, 0, 0, false, false};
    return payload_over(key, mine->launches.size() - 1, Why::failed, &record);
  }
  wire::TaskResult result{bag.task->index, 1, bag.task->order};
  result.ms = static_cast<std::uint32_t>(took / k_ms);
  result.exit_code = fails ? 1 : 0;
  result.offset = bag.output.size();
  const std::string text = "task " + std::to_string(result.index) + " of epoch " + std::to_string(std::get<2>(key)) + "\n";
  if (world_.options.words > 0) result.bytes = static_cast<std::uint32_t>(text.size());
  if (result.bytes > 0) bag.output += text, world_.bags->prints({std::get<1>(key)}, Epoch{std::get<2>(key)}, text);
  bag.task.reset();
  record_task(key, result);
  run_tasks(key, payload);
}

// An orderly stop takes back what it was given, and tells of it; all other ends leave it as it is.
void Host::stop_tasks(const Key& key) {
  WorkerFiles& bag = folder(key)->bag;
  for (const wire::TaskResult& one : bag.queue.take_back()) record_task(key, one);
  if (!bag.task) return;
  record_task(key, {bag.task->index, 1, bag.task->order, wire::TaskEnd::stopped});
  bag.task.reset();
}

void Host::lose_task_files(WorkerFiles& bag) const {
  bag.task.reset();
  bag.results.resize(world_.rng.below(bag.results.size() + 1));
  bag.orders.resize(world_.rng.below(bag.orders.size() + 1));
  bag.output.resize(world_.rng.below(bag.output.size() + 1));
}

Result<void> Host::take_orders(const Key& key, const wire::BagAsk& ask) {
  Folder* mine = folder(key);
  if (mine == nullptr || mine->emptied) return make_error(Code::not_found, "this attempt is not on this host");
  WorkerFiles& bag = mine->bag;
  if (ask.orders.empty()) return {};
  if (ask.orders_from > bag.orders.size()) return make_error(Code::refused, "orders are missing");
  if (disk_full) return make_error(Code::no_space, "cannot write the orders");
  for (std::size_t i = bag.orders.size() - ask.orders_from; i < ask.orders.size(); ++i) {
    world_.bags->ordered(index_, ask.job, ask.epoch, bag.orders.size(), ask.orders[i]);
    bag.orders.push_back(ask.orders[i]);
  }
  if (!mine->launches.empty() && mine->launches.back().init_lives)
    world_.after(k_ms, world_.host_node(index_), [this, key, payload = mine->launches.back().payload] { run_tasks(key, payload); });
  return {};
}

wire::BagTold Host::tell_tasks(const Key& key, const wire::BagAsk& ask) {
  wire::BagTold told{ask.job, ask.epoch};
  if (const Result<void> taken = take_orders(key, ask); !taken) {
    told.error = taken.error();
    return told;
  }
  const Folder& mine = *folder(key);
  const WorkerFiles& bag = mine.bag;
  told.orders_seen = bag.orders.size();
  told.results_from = ask.results_from;
  told.results_end = bag.results.size();
  for (std::uint64_t i = ask.results_from; i < bag.results.size() && told.results.size() < ask.results_max; ++i)
    told.results.push_back(bag.results[i]);
  if (bag.task) told.running = {bag.task->index};
  told.queued = bag.queue.size() + (bag.orders.size() > bag.read ? 1 : 0);
  told.output_end = bag.output.size();
  told.over = mine.status && mine.status->phase == wire::AttemptPhase::ended;
  return told;
}

// What a host that lies makes of its results: tasks that it was never given, successes and orders that never were.
void Host::lie(wire::BagTold& told) {
  if (world_.options.lie_orders && !told.results.empty()) {
    told.orders_seen += 1000;
    told.results.front().order = told.orders_seen - 1;
    told.results.front().index = world_.rng.below(1000);
  }
  for (wire::TaskResult& one : told.results) {
    if (!world_.rng.chance(0.3)) continue;
    switch (world_.rng.below(5)) {
      case 0: one.index = world_.rng.below(1000); break;
      case 1: one.order = world_.rng.below(1000); break;
      case 2: one.count = world_.rng.below(1000); break;
      case 3: one.exit_code = 0; break;
      default: one.end = wire::TaskEnd::revoked;
    }
  }
}

wire::BagReply Host::answer_bag(int laptop, const wire::BagRequest& request) {
  wire::BagReply reply;
  bool news = false;
  for (const wire::BagAsk& ask : request.workers) {
    if (world_.kill_here()) throw Killed{};
    reply.workers.push_back(tell_tasks({laptop, ask.job.value, ask.epoch.value}, ask));
    wire::BagTold& told = reply.workers.back();
    news = news || told.error || told.over || !told.results.empty();
    if (index_ == world_.options.liar && world_.options.lie_start < 1) lie(told);
  }
  if (world_.kill_here()) throw Killed{};
  if (!news) answer_later(std::min(request.wait, wire::k_bag_wait_max).count());
  return reply;
}

Result<std::string> Host::read_task_output(int laptop, const wire::LogRequest& wanted) {
  const Folder* mine = folder({laptop, wanted.job.value, wanted.epoch.value});
  if (mine == nullptr || mine->emptied) return make_error(Code::not_found, "this attempt is not on this host");
  return mine->bag.output.substr(std::min<std::uint64_t>(wanted.offset, mine->bag.output.size()), wanted.max_bytes);
}

}  // namespace gridctl::sim
