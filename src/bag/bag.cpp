// SPDX-License-Identifier: Apache-2.0
#include "bag/bag.hpp"

#include <algorithm>

namespace gridctl::bag {

namespace {
template <class... Ts>
struct Overload : Ts... {
  using Ts::operator()...;
};
constexpr std::size_t k_ranges_named = 20;
}  // namespace

void Bag::apply(const Record& record) {
  std::visit(Overload{[this](const Begun& one) {
                        retries_ = one.retries;
                        raises_ = one.raises;
                        if (one.tasks > k_tasks_most || one.tasks <= phases_.size()) return;
                        waiting_.add({phases_.size(), one.tasks - phases_.size()});
                        phases_.resize(one.tasks, Phase::open);
                      },
                      [this](const Joined& one) {
                        Holder& holder = workers_[one.worker];
                        holder.host = one.host;
                        holder.attempt = one.attempt;
                        holder.level = one.level;
                      },
                      [this](const auto& one) { take(one); }},
             record);
}

void Bag::take(const Resumed&) {
  for (Index index = 0; counts_.failed > 0 && index < phases_.size(); ++index)
    if (phases_[index] == Phase::failed) {
      phases_[index] = Phase::open;
      if (!is_held(index)) waiting_.add({index, 1});
    }
  counts_.failed = 0;
  for (const Index index : again_) waiting_.add({index, 1});
  for (const auto& [level, tasks] : hungry_)
    for (const Range& range : tasks.list()) waiting_.add(range);
  again_.clear();
  hungry_.clear();
  troubles_.clear();
  stops_.clear();
  cap_.reset();
}

std::uint64_t Bag::waiting(std::uint64_t level) const {
  std::uint64_t count = waiting_.count() + again_.size();
  for (const auto& [needed, tasks] : hungry_)
    if (needed <= level) count += tasks.count();
  return count;
}

const Holder* Bag::find(const Worker& worker) const {
  const auto found = workers_.find(worker);
  return found == workers_.end() ? nullptr : &found->second;
}

Progress Bag::progress() const {
  Progress now = counts_;
  now.tasks = phases_.size();
  for (const auto& [worker, holder] : workers_)
    if (holder.open) now.held += holder.held.count();
  return now;
}

Ranges Bag::failed() const {
  Ranges out;
  for (const auto& [index, trouble] : troubles_)
    if (has_failed(index)) out.add({index, 1});
  return out;
}

bool Bag::is_held(Index index) const {
  return std::any_of(workers_.begin(), workers_.end(),
                     [&](const auto& one) { return one.second.open && one.second.held.contains(index); });
}

std::uint64_t Bag::open_workers() const {
  return static_cast<std::uint64_t>(
      std::count_if(workers_.begin(), workers_.end(), [](const auto& one) { return one.second.open; }));
}

void Bag::give_back(Range range) {
  for (Index index = range.first; index < range.end(); ++index)
    if (index < phases_.size() && phases_[index] == Phase::open && !is_held(index)) {
      const auto trouble = troubles_.find(index);
      if (trouble == troubles_.end()) {
        waiting_.add({index, 1});
        continue;
      }
      no_longer_waits({index, 1});  // it was taken back while it ran, and has failed since
      if (trouble->second.level > 0) hungry_[trouble->second.level].add({index, 1});
      else again_.insert(index);
    }
}

void Bag::no_longer_waits(Range range) {
  waiting_.erase(range);
  again_.erase(again_.lower_bound(range.first), again_.lower_bound(range.end()));
  for (auto& [level, tasks] : hungry_) tasks.erase(range);
  std::erase_if(hungry_, [](const auto& one) { return one.second.empty(); });
}

void Bag::give_up(Index index, Holder* holder) {
  phases_[index] = Phase::failed;
  ++counts_.failed;
  stops_.erase(index);
  if (const auto trouble = troubles_.find(index); trouble != troubles_.end()) trouble->second.hosts.insert(trouble->second.last_host);
  if (holder != nullptr) ++holder->failed;
  no_longer_waits({index, 1});
}

void Bag::take(const Ordered& record) {
  Holder& holder = workers_[record.worker];
  if (record.number < holder.next_order()) return;
  // Records between them were lost, so these orders are unknown.
  while (holder.next_order() < record.number) holder.orders.push_back({wire::OrderKind::revoke, 0, 0, {}, 0});
  for (const Range& range : record.ranges) {
    holder.orders.push_back({record.kind, range.first, range.count, {}, 0});
    if (record.kind == wire::OrderKind::grant) {
      no_longer_waits(range);
      holder.held.add(range);
    } else if (record.kind == wire::OrderKind::revoke) {
      holder.held.erase(range);
      give_back(range);
    }
  }
}

void Bag::take(const Told& record) {
  Holder& holder = workers_[record.worker];
  for (std::uint64_t i = 0; i < record.results.size();) {
    const std::uint64_t count = holder.open && record.from + i >= holder.results ? take_run(holder, record.results, i) : 0;
    if (count == 0 && record.from + i >= holder.results) {
      if (holder.open) take(holder, record.results[i]);
      else take_late(record.results[i]);
    }
    i += std::max<std::uint64_t>(count, 1);
    holder.results = std::max(holder.results, record.from + i);  // what comes before it is known, or its record was lost
  }
}

// Counts the results from `at` on that are of the most frequent kind: tasks that follow each other, succeeded, and were
// never seen before. All of them are taken at once, because each status command reads a million.
std::uint64_t Bag::take_run(Holder& holder, const std::vector<wire::TaskResult>& results, std::uint64_t at) {
  const Index first = results[at].index;
  if (!was_ordered(holder, results[at])) return 0;
  const std::uint64_t order = results[at].order;
  Index end = phases_.size();
  if (order >= holder.orders_from && holder.orders[order - holder.orders_from].count > 0)
    end = std::min(end, holder.orders[order - holder.orders_from].first + holder.orders[order - holder.orders_from].count);
  std::uint64_t count = 0;
  for (; at + count < results.size(); ++count) {
    const wire::TaskResult& one = results[at + count];
    if (one.index != first + count || one.order != order || !one.succeeded() || one.index >= end || one.count != 1 ||
        phases_[one.index] != Phase::open)
      break;
  }
  const Range range{first, count};
  const auto trouble = troubles_.lower_bound(first);
  if (count < 2 || (trouble != troubles_.end() && trouble->first < range.end())) return 0;
  holder.held.erase(range);
  holder.unstarted = 0;
  holder.done += count;
  holder.failed_here_only -= std::min(holder.failed_here_only, count);
  counts_.runs += count;
  counts_.done += count;
  std::fill_n(phases_.begin() + static_cast<std::ptrdiff_t>(first), count, Phase::done);
  waiting_.erase(range);
  stops_.erase(stops_.lower_bound(range.first), stops_.lower_bound(range.end()));
  return count;
}

void Bag::take_late(const wire::TaskResult& result) {
  if (result.end == wire::TaskEnd::revoked || result.index >= phases_.size()) return;
  ++counts_.late;
  if (is_done(result.index) && !result.succeeded()) ++counts_.late_differ;
}

// Returns whether the task was ordered, because only then its result counts. Orders whose records were lost are
// unknown.
bool Bag::was_ordered(const Holder& holder, const wire::TaskResult& result) {
  if (result.order < holder.orders_from) return true;
  if (result.order - holder.orders_from >= holder.orders.size()) return false;
  const wire::BagOrder& order = holder.orders[result.order - holder.orders_from];
  if (order.count == 0) return true;
  return order.kind == wire::OrderKind::grant && result.index >= order.first &&
         result.index - order.first < order.count && result.count <= order.count - (result.index - order.first);
}

void Bag::take(Holder& holder, const wire::TaskResult& result) {
  if (result.index >= phases_.size() || !was_ordered(holder, result)) return;
  const std::uint64_t count = std::min<std::uint64_t>(std::max<std::uint64_t>(result.count, 1), phases_.size() - result.index);
  if (result.end == wire::TaskEnd::revoked) {
    for (const Range& range : Ranges{{result.index, count}}.list()) {
      holder.held.erase(range);
      give_back(range);
    }
    return;
  }
  holder.held.erase({result.index, 1});
  holder.unstarted = result.end == wire::TaskEnd::unstarted ? holder.unstarted + 1 : 0;
  if (result.end == wire::TaskEnd::stopped && phases_[result.index] == Phase::open) ++stops_[result.index];
  if (result.end == wire::TaskEnd::stopped || result.end == wire::TaskEnd::unstarted)
    return give_back({result.index, 1});
  ++counts_.runs;
  if (phases_[result.index] == Phase::done) ++counts_.twice;
  else if (result.succeeded()) succeeded(result.index, holder);
  else failed(result.index, holder, result, false);
}

void Bag::succeeded(Index index, Holder& holder) {
  if (phases_[index] == Phase::failed) --counts_.failed;
  phases_[index] = Phase::done;
  ++counts_.done;
  stops_.erase(index);
  ++holder.done;
  if (holder.failed_here_only > 0) --holder.failed_here_only;
  no_longer_waits({index, 1});
  const auto trouble = troubles_.find(index);
  if (trouble == troubles_.end()) return;
  for (auto& [worker, other] : workers_)
    if (trouble->second.hosts.contains(other.host) && other.host != holder.host) ++other.failed_here_only;
  troubles_.erase(trouble);
}

void Bag::failed(Index index, Holder& holder, const wire::TaskResult& result, bool died) {
  if (phases_[index] != Phase::open) return;
  Trouble& trouble = troubles_[index];
  ++trouble.tries;
  trouble.last = result;
  trouble.last_host = holder.host;
  trouble.died = died;
  if (raises_ && (result.end == wire::TaskEnd::oom || result.end == wire::TaskEnd::no_space)) {
    ++trouble.ran_out;
    trouble.level = std::max(trouble.level, holder.level + 1);
    if (cap_ && trouble.level >= *cap_) return give_up(index, &holder);
    ++counts_.retries;
    return give_back({index, 1});
  }
  trouble.hosts.insert(holder.host);
  const bool tried_enough = trouble.hosts.size() > 1 || retries_ == 0 || !may_wait_for_another_host(trouble);
  // If the task also runs elsewhere, that run decides: a bag that has ended must not learn that its failed task is
  // done.
  if (trouble.tries - trouble.ran_out > retries_ && tried_enough && !is_held(index)) {
    give_up(index, &holder);
  } else {
    ++counts_.retries;
    give_back({index, 1});
  }
}

void Bag::take(const Closed& record) {
  Holder& holder = workers_[record.worker];
  if (!holder.open) return;
  holder.open = false;
  for (const Index index : record.suspects)
    if (holder.held.contains(index) && index < phases_.size()) failed(index, holder, {}, true);
  for (const Range& range : holder.held.list()) give_back(range);
  holder.held = {};
}

void Bag::take(const Rebased& record) {
  Holder& holder = workers_[record.worker];
  holder.orders.clear();
  holder.orders_from = record.orders;
  holder.results = record.results;
  const std::vector<Range> lost = holder.held.list();
  holder.held = {};
  for (const Range& range : lost) give_back(range);
}

void Bag::take(const Capped& record) {
  cap_ = record.level;
  std::vector<Range> hopeless;
  for (auto at = hungry_.lower_bound(record.level); at != hungry_.end(); ++at)
    for (const Range& range : at->second.list()) hopeless.push_back(range);
  for (const Range& range : hopeless)
    for (Index index = range.first; index < range.end(); ++index) give_up(index, nullptr);
}

std::string end_in_words(const Bag& bag) {
  const Progress now = bag.progress();
  if (now.failed == 0) return now.tasks == 1 ? "its task is done" : "all " + std::to_string(now.tasks) + " tasks are done";
  return std::to_string(now.failed) + " of " + std::to_string(now.tasks) +
         " tasks failed: " + to_text(bag.failed().list(), k_ranges_named);
}

}  // namespace gridctl::bag
