// SPDX-License-Identifier: Apache-2.0
// Computes the share of each worker. A worker holds as many tasks as keep it busy until the next orders reach it, and
// no more, because no other worker can do the tasks that it holds. Towards the end, shares shrink, so that all workers
// finish at about the same time.
#include <algorithm>
#include <cmath>

#include "bag/bag.hpp"

namespace gridctl::bag {

namespace {
constexpr double k_ahead_s = 2;                // of work that a worker holds: more than two round trips
constexpr std::uint64_t k_held_most = 8192;    // tasks
constexpr std::uint64_t k_first = 2;           // tasks, as long as nobody knows how long one takes
constexpr double k_quick_s = 0.3;              // of work: less is not worth sharing
constexpr double k_twice_share = 0.05;         // of all tasks: what may be run twice for the end to come sooner
constexpr std::uint64_t k_twice_least = 2;     // tasks, of small bags
constexpr int k_unstarted_most = 3;            // in a row: this host starts nothing
constexpr std::uint64_t k_failed_here_most = 5;  // tasks that failed here and succeeded elsewhere
constexpr std::size_t k_again_most = 32;       // tasks that wait for another host than those on which they failed
constexpr double k_slower = 1.5;               // times as long: then another worker is the better one
constexpr double k_steal_least_s = 1;          // of waiting that it must save
constexpr double k_recall_least_s = 3;         // of work that a worker holds which is to leave
constexpr std::uint64_t k_stops_most = 3;      // runs of a task that orderly stops may end
constexpr double k_task_least_s = 0.0005;      // what is measured as less is mostly the worker's own time
constexpr double k_pace_weight = 0.3;          // of the newest results
constexpr std::uint64_t k_warm_up = 16;        // results: the first ones tell of the start of a program, too
}  // namespace

// Ignores the first answer of a program that stays up, as soon as there is another one: the program loads its model
// first, so that the first answer alone does not describe the others. Blending it in would keep the worker short of
// tasks for ten seconds.
void Pace::take(const std::vector<wire::TaskResult>& results) {
  double sum_s = 0, longest_s = 0;
  std::uint64_t count = 0;
  for (const wire::TaskResult& one : results)
    if (one.end == wire::TaskEnd::ended) {
      sum_s += one.ms / 1000.0;
      longest_s = std::max(longest_s, one.ms / 1000.0);
      ++count;
    }
  if (count == 0) return;
  const bool is_first = seen < k_warm_up;
  const double mean_s = is_first && count > 1 ? (sum_s - longest_s) / static_cast<double>(count - 1) : sum_s / static_cast<double>(count);
  const double newest_s = std::max(mean_s, k_task_least_s);
  task_s = is_first ? newest_s : task_s + k_pace_weight * (newest_s - task_s);
  seen += count;
}

bool Bag::fits_elsewhere(const Trouble& trouble) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const auto& one) {
    return one.second.open && !one.second.is_shunned() && one.second.level >= trouble.level && !trouble.hosts.contains(one.second.host);
  });
}

bool Holder::is_shunned() const { return unstarted >= k_unstarted_most || failed_here_only >= k_failed_here_most; }

// If all hosts are avoided, the cause is tasks that fail now and then, and not the hosts.
bool Bag::is_passed_over(const Holder& holder) const {
  return holder.is_shunned() &&
         std::any_of(workers_.begin(), workers_.end(), [](const auto& one) { return one.second.open && !one.second.is_shunned(); });
}

// A task that failed on one host may still work: another host should try it, now or when there is one, as long as there
// is other work. If many tasks fail, nothing waits, because then the host is not the cause.
bool Bag::may_wait_for_another_host(const Trouble& trouble) const {
  if (trouble.level > 0) return false;  // few workers may have it
  return fits_elsewhere(trouble) || (!waiting_.empty() && again_.size() < k_again_most);
}

std::optional<Ordered> Bag::share(const Worker& worker, const Pace& pace) const {
  const Holder* holder = find(worker);
  if (holder == nullptr || !holder->open || is_passed_over(*holder)) return std::nullopt;
  const std::uint64_t left = waiting(holder->level);
  if (left == 0) return std::nullopt;
  const std::uint64_t slots = static_cast<std::uint64_t>(std::max(pace.slots, 1));
  std::uint64_t wanted = k_first * slots;
  if (pace.task_s > 0)
    wanted = static_cast<std::uint64_t>(
        std::min(std::ceil(k_ahead_s / pace.task_s + 1) * static_cast<double>(slots), double{k_held_most}));
  const auto quick = pace.task_s > 0 ? static_cast<std::uint64_t>(k_quick_s / pace.task_s) * slots : 0;
  const std::uint64_t fair = std::max({left / (2 * std::max<std::uint64_t>(open_workers(), 1)), slots, quick});
  wanted = std::min(wanted, std::max(fair, holder->held.count()));
  const std::uint64_t held = holder->held.count();
  if (held >= wanted || (held > slots && wanted - held < wanted / 4)) return std::nullopt;
  std::uint64_t need = wanted - held;
  Ordered order{worker, wire::OrderKind::grant, {}, holder->next_order()};
  for (auto tasks = hungry_.begin(); tasks != hungry_.end() && tasks->first <= holder->level; ++tasks)
    for (const Range& range : tasks->second.head(need)) {
      order.ranges.push_back(range);
      need -= range.count;
    }
  for (const Index index : again_) {
    if (need == 0) break;
    const auto trouble = troubles_.find(index);
    if (trouble != troubles_.end() && trouble->second.hosts.contains(holder->host) &&
        may_wait_for_another_host(trouble->second))
      continue;
    order.ranges.push_back({index, 1});
    --need;
  }
  for (const Range& range : waiting_.head(need)) order.ranges.push_back(range);
  if (order.ranges.empty()) return std::nullopt;
  return order;
}

// The host reports late what it has begun, and a task that is taken back then runs twice. So short tasks are left to it.
std::optional<Ordered> Bag::recall(const Worker& worker, const std::vector<Index>& running, const Pace& pace) const {
  const Holder* holder = find(worker);
  if (holder == nullptr || !holder->open) return std::nullopt;
  Ranges unbegun = holder->held;
  for (const Index index : running) unbegun.erase({index, 1});
  const bool is_soon_done = pace.task_s > 0 && static_cast<double>(holder->held.count()) * pace.task_s < k_recall_least_s;
  if (unbegun.empty() || is_soon_done) return std::nullopt;
  return Ordered{worker, wire::OrderKind::revoke, unbegun.list(), holder->next_order()};
}

bool Bag::is_spared(Index index) const {
  const auto found = stops_.find(index);
  return found != stops_.end() && found->second >= k_stops_most;
}

// Leaves out the tasks that another worker has done, or that failed for good, and those that need more than a worker of
// this level has.
Ranges Bag::undone(const Ranges& held, std::uint64_t level) const {
  Ranges left = held;
  for (const Range& range : held.list())
    for (Index index = range.first; index < range.end(); ++index)
      if (const auto trouble = troubles_.find(index); index >= phases_.size() || phases_[index] != Phase::open ||
                                                      (trouble != troubles_.end() && trouble->second.level > level))
        left.erase({index, 1});
  return left;
}

std::optional<Bag::Steal> Bag::steal(const Worker& idle, const std::map<Worker, Pace>& paces) const {
  const Holder* mine = find(idle);
  if (mine == nullptr || !mine->open || !mine->held.empty() || waiting(mine->level) > 0) return std::nullopt;
  if (is_passed_over(*mine)) return std::nullopt;
  const auto pace_of = [&](const Worker& worker) {
    const auto found = paces.find(worker);
    return found == paces.end() ? 0.0 : found->second.task_s;
  };
  const double mine_s = pace_of(idle);
  const Worker* from = nullptr;
  Ranges theirs;
  double longest = k_steal_least_s;
  for (const auto& [worker, holder] : workers_) {
    if (!holder.open || holder.held.empty() || worker == idle) continue;
    const Ranges held = undone(holder.held, mine->level);
    if (held.empty()) continue;
    const double theirs_s = pace_of(worker);
    const bool alone = held.count() == 1;  // it runs
    if (alone && (mine_s == 0 || theirs_s < k_slower * mine_s || is_held_twice(held.first()))) continue;
    const double left = static_cast<double>(held.count()) * theirs_s - (alone ? mine_s : 0);
    if (left > longest) from = &worker, longest = left, theirs = held;
  }
  if (from == nullptr) return std::nullopt;
  if (theirs.count() == 1) {
    const std::uint64_t budget =
        std::max(k_twice_least, static_cast<std::uint64_t>(k_twice_share * static_cast<double>(phases_.size())));
    if (counts_.twice + held_twice() >= budget) return std::nullopt;
    return Steal{std::nullopt, {idle, wire::OrderKind::grant, theirs.list(), mine->next_order()}};
  }
  // Both workers should finish at the same time; the first of the held tasks already runs.
  const double share = mine_s > 0 ? pace_of(*from) / (pace_of(*from) + mine_s) : 0.5;
  const std::uint64_t others = theirs.count() - 1;
  const auto count = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(others) * share), 1, others);
  const std::vector<Range> taken = theirs.tail(count);
  return Steal{Ordered{*from, wire::OrderKind::revoke, taken, workers_.at(*from).next_order()},
               {idle, wire::OrderKind::grant, taken, mine->next_order()}};
}

bool Bag::is_held_twice(Index index) const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [&](const auto& one) { return one.second.open && one.second.held.contains(index); }) > 1;
}

// Only a task that runs alone on its worker is ever run twice.
std::uint64_t Bag::held_twice() const {
  std::uint64_t count = 0;
  for (const auto& [worker, holder] : workers_)
    if (holder.open && holder.held.count() == 1 && is_held_twice(holder.held.first())) ++count;
  return (count + 1) / 2;
}

}  // namespace gridctl::bag
