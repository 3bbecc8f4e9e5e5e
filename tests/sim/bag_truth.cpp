// SPDX-License-Identifier: Apache-2.0
#include "bag_truth.hpp"

#include <algorithm>

#include "host.hpp"
#include "registry/registry.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_given_back = 30 * k_s;  // after which the tasks of a lost host are nobody's
constexpr Nanos k_hungry = 2 * k_min;     // without a task, while tasks wait and all is well
constexpr double k_twice_share = 0.05;
std::string text_of(std::uint64_t number) { return std::to_string(number); }
}  // namespace

std::pair<std::string, std::uint32_t> BagTruth::worker_of(const JobId& job) {
  const std::uint32_t number = registry::twin_number(job);
  if (number < 2) return {job.value, 1};
  return {registry::leader_of(job).value, number};
}

void BagTruth::must(bool holds, const char* rule, const Bag& bag, const std::string& what) const {
  ++world_.truth->rules_met[rule];
  if (!holds) throw Violation(rule, "bag " + bag.leader + ": " + what);
}

bool BagTruth::lies(const Seat& seat) const { return world_.truth->is_liar({seat.host}); }

std::uint64_t BagTruth::executions(const JobId& leader) const {
  std::uint64_t count = 0;
  for (const auto& [where, there] : there_)
    if (worker_of({where.first}).first == leader.value)
      count += static_cast<std::uint64_t>(std::ranges::count_if(there.results, [](const wire::TaskResult& one) {
        return one.end == wire::TaskEnd::ended;
      }));
  return count;
}

// --- The journal -----------------------------------------------------------------------------------------------------

void BagTruth::appended(const JobId& leader, std::string_view records) {
  Bag& bag = bags_[leader.value];
  bag.leader = leader.value;
  const std::string piece = std::string(bag::k_magic) + std::string(records);
  (void)bag::scan(piece, [&](const bag::Record& record) {
    bag.written.insert(bag::encode(record));
    take(bag, record);
  });
}

// Whoever reads it from the beginning comes to the same.
void BagTruth::reread(const JobId& leader, const std::string& journal) {
  const auto known = bags_.find(leader.value);
  if (known == bags_.end()) return;
  // What was written in part may have been completed by the first byte of what was written next.
  (void)bag::scan(journal, [&](const bag::Record& record) {
    if (known->second.written.insert(bag::encode(record)).second) take(known->second, record);
  });
  bag::Bag anew;
  (void)bag::scan(journal, [&](const bag::Record& record) { anew.apply(record); });
  for (const bag::Index index : known->second.done)
    must(anew.is_done(index), "B1", known->second, "task " + text_of(index) + " was done, and is forgotten");
  must(anew.progress().done == known->second.done.size(), "B1", known->second, "more tasks are done than were told");
}

void BagTruth::take(Bag& bag, const bag::Record& record) {
  if (const auto* begun = std::get_if<bag::Begun>(&record)) bag.tasks = std::max(bag.tasks, begun->tasks), bag.retries = begun->retries;
  if (const auto* joined = std::get_if<bag::Joined>(&record)) bag.seats[joined->worker].host = joined->host;
  if (const auto* ordered = std::get_if<bag::Ordered>(&record)) take(bag, *ordered);
  if (const auto* told = std::get_if<bag::Told>(&record)) take(bag, *told);
  if (const auto* closed = std::get_if<bag::Closed>(&record)) {
    Seat& seat = bag.seats[closed->worker];
    if (seat.open)
      for (const bag::Index index : closed->suspects)
        if (seat.held.contains(index)) ++bag.tries[index].count, bag.tries[index].hosts.insert(seat.host);
    seat.open = false;
    seat.held.clear();
  }
  if (std::holds_alternative<bag::Resumed>(record)) bag.tries.clear();
  std::set<bag::Index> failed;
  for (const bag::Range& range : bag.read.failed().list())
    for (bag::Index index = range.first; index < range.end(); ++index) failed.insert(index);
  bag.read.apply(record);
  must(bag.read.progress().done == bag.done.size(), "B1", bag,
       text_of(bag.read.progress().done) + " tasks count as done, and " + text_of(bag.done.size()) + " are");
  for (const auto& [index, trouble] : bag.read.troubles())
    if (bag.read.has_failed(index) && !failed.contains(index)) check_failed(bag, index, trouble.last_host);
}

// A grant behind it may be sent as soon as this is written.
void BagTruth::take(Bag& bag, const bag::Ordered& record) {
  Seat& seat = bag.seats[record.worker];
  if (record.number < seat.orders.size()) return;  // written twice
  must(record.number == seat.orders.size(), "B3", bag, "an order is missing before order " + text_of(record.number));
  must(!seat.host.empty(), "B3", bag, "orders for a worker that has never joined");
  for (const bag::Range& range : record.ranges) {
    seat.orders.push_back({record.kind, range.first, range.count, {}, 0});
    for (bag::Index index = range.first; index < range.end(); ++index) {
      if (record.kind == wire::OrderKind::revoke) seat.held.erase(index);
      if (record.kind != wire::OrderKind::grant) continue;
      check_given(bag, record.worker, seat, index);
      seat.held.insert(index);
    }
  }
}

void BagTruth::check_given(Bag& bag, const bag::Worker& worker, const Seat& seat, bag::Index index) {
  const std::string which = "task " + text_of(index) + " is given to " + seat.host + ", ";
  must(seat.open, "B3", bag, which + "which was given up");
  must(index < bag.tasks, "B3", bag, which + "and is no task");
  must(!bag.done.contains(index), "B3", bag, which + "and is done");
  must(!bag.read.has_failed(index), "B5", bag, which + "and has failed for good");
  must(!seat.held.contains(index), "B3", bag, which + "which has it");
  const bool elsewhere = std::ranges::any_of(bag.seats, [&](const auto& one) {
    return one.first != worker && one.second.open && one.second.held.contains(index);
  });
  if (!elsewhere) return;
  const auto budget = std::max<std::uint64_t>(2, static_cast<std::uint64_t>(k_twice_share * static_cast<double>(bag.tasks)));
  must(bag.twice + held_twice(bag) < budget, "B3", bag, which + "and another has it, beyond what may be run twice");
}

std::uint64_t BagTruth::held_twice(const Bag& bag) const {
  std::map<bag::Index, int> holders;
  for (const auto& [worker, seat] : bag.seats)
    if (seat.open)
      for (const bag::Index index : seat.held) ++holders[index];
  return static_cast<std::uint64_t>(std::ranges::count_if(holders, [](const auto& one) { return one.second > 1; }));
}

void BagTruth::take(Bag& bag, const bag::Told& record) {
  Seat& seat = bag.seats[record.worker];
  must(record.from <= seat.told, "B2", bag, "results of " + seat.host + " are passed over");
  const auto there = std::ranges::find_if(there_, [&](const auto& one) {
    return one.first.second == record.worker.epoch && worker_of({one.first.first}) == std::pair(bag.leader, record.worker.number);
  });
  for (std::size_t i = 0; i < record.results.size(); ++i) {
    if (!lies(seat))
      must(there != there_.end() && record.from + i < there->second.results.size() &&
               there->second.results[record.from + i] == record.results[i],
           "B2", bag, "result " + text_of(record.from + i) + " of " + seat.host + " is not what the host has found");
    if (record.from + i < seat.told) continue;
    seat.told = record.from + i + 1;
    if (seat.open) take(bag, record.worker, seat, record.results[i]);
  }
}

// By an open worker, of a task that it was given.
void BagTruth::take(Bag& bag, const bag::Worker&, Seat& seat, const wire::TaskResult& result) {
  if (result.order >= seat.orders.size()) return;
  const wire::BagOrder& order = seat.orders[result.order];
  if (order.kind != wire::OrderKind::grant || result.index < order.first || result.index >= order.first + order.count ||
      result.index + std::max<std::uint64_t>(result.count, 1) > order.first + order.count)
    return;
  for (std::uint64_t i = 0; i < std::max<std::uint64_t>(result.count, 1); ++i) seat.held.erase(result.index + i);
  if (result.end == wire::TaskEnd::revoked || result.end == wire::TaskEnd::stopped || result.end == wire::TaskEnd::unstarted) return;
  if (bag.done.contains(result.index)) {
    ++bag.twice;
  } else if (result.succeeded()) {
    bag.done.insert(result.index);
  } else {
    Tries& tries = bag.tries[result.index];
    ++tries.count;
    tries.hosts.insert(seat.host);
  }
}

// For good only after its tries, and not by the word of one host where others would have tried.
void BagTruth::check_failed(Bag& bag, bag::Index index, const std::string& host) {
  const Tries& tries = bag.tries[index];
  must(tries.count > bag.retries, "B5", bag, "task " + text_of(index) + " is given up after " + text_of(tries.count) + " tries");
  if (tries.hosts.size() > 1 || bag.retries == 0) return;
  for (const auto& [worker, holder] : bag.read.workers())
    must(!holder.open || holder.is_shunned() || holder.host == host, "B5", bag,
         "task " + text_of(index) + " is given up by the word of " + host + " alone, and " + holder.host + " could try it");
}

void BagTruth::printed(const JobId& leader, std::uint32_t worker, Epoch epoch, std::uint64_t offset, std::string_view bytes) {
  const Bag& bag = bags_[leader.value];
  const auto seat = bag.seats.find({worker, epoch.value});
  if (seat == bag.seats.end() || lies(seat->second)) return;
  const auto there = std::ranges::find_if(there_, [&](const auto& one) {
    return one.first.second == epoch.value && worker_of({one.first.first}) == std::pair(leader.value, worker);
  });
  must(there != there_.end() && there->second.output.compare(std::min(offset, there->second.output.size()), bytes.size(), bytes) == 0,
       "B9", bag, "what is kept as printed by tasks on " + seat->second.host + " is not what they printed");
}

void BagTruth::ends(const JobId& leader, bool well) {
  const Bag& bag = bags_[leader.value];
  const std::uint64_t failed = bag.read.progress().failed;
  must(bag.done.size() + failed == bag.tasks && bag.tasks > 0, "B8", bag,
       "is over, and of " + text_of(bag.tasks) + " tasks " + text_of(bag.done.size()) + " are done and " + text_of(failed) + " have failed");
  must(well == (failed == 0), "B8", bag, "tells another end than its own");
}

// --- Hosts -----------------------------------------------------------------------------------------------------------

void BagTruth::ordered(int host, const JobId& job, Epoch epoch, std::uint64_t number, const wire::BagOrder& order) {
  const auto [leader, worker] = worker_of(job);
  const Bag& bag = bags_[leader];
  const auto seat = bag.seats.find({worker, epoch.value});
  must(seat != bag.seats.end() && number < seat->second.orders.size() && seat->second.orders[number] == order, "B4", bag,
       "host" + std::to_string(host) + " is given order " + text_of(number) + ", which is not written down");
}

void BagTruth::ran(const JobId& job, Epoch epoch, const wire::TaskResult& result) {
  there_[{job.value, epoch.value}].results.push_back(result);
}

void BagTruth::prints(const JobId& job, Epoch epoch, std::string_view text) { there_[{job.value, epoch.value}].output += text; }

// What a host has found is known here before it is removed there, or counts for nothing.
void BagTruth::removes(const JobId& job, Epoch epoch, std::uint64_t results) {
  const auto [leader, worker] = worker_of(job);
  const auto known = bags_.find(leader);
  if (known == bags_.end()) return;
  const auto seat = known->second.seats.find({worker, epoch.value});
  if (seat == known->second.seats.end() || !seat->second.open || world_.truth->is_over({leader})) return;
  if (known->second.read.progress().over()) return;  // each task has its end: what else its workers found changes nothing
  must(seat->second.told >= results, "B7", known->second,
       text_of(results - std::min(results, seat->second.told)) + " results on " + seat->second.host + " are thrown away");
}

// --- Now and then ----------------------------------------------------------------------------------------------------

void BagTruth::audit(Laptop& laptop) {
  if (laptop.controller() == nullptr) return;
  for (auto& [id, bag] : bags_) {
    const control::TrackedJob* leader = std::as_const(*laptop.controller()).book().find({id});
    if (leader == nullptr || !leader->goes_on() || leader->unsure || world_.now - laptop.clear_since() < k_given_back) {
      bag.lost_since.clear();
      bag.hungry_since = -1;
      continue;
    }
    check_lost(laptop, bag);
    check_size(laptop, bag, *leader);
    check_hungry(laptop, bag);
  }
}

void BagTruth::check_lost(Laptop& laptop, Bag& bag) {
  for (const auto& [id, job] : laptop.controller()->book().all()) {
    const auto [leader, number] = worker_of({id});
    if (leader != bag.leader) continue;
    for (const job::PendingCleanup& end : job->state().pending_cleanups) {
      const auto seat = bag.seats.find({number, end.epoch.value});
      if (!end.stale || seat == bag.seats.end() || !seat->second.open || seat->second.held.empty()) continue;
      const Nanos since = std::max(bag.lost_since.try_emplace(seat->first, world_.now).first->second, laptop.clear_since());
      must(world_.now - since < k_given_back, "B6", bag, "tasks stay with " + seat->second.host + ", which is lost");
    }
  }
}

void BagTruth::check_size(Laptop& laptop, const Bag& bag, const control::TrackedJob& leader) const {
  const int most = leader.spec().tasks->max_parallel;
  if (most == 0) return;
  const auto workers = std::ranges::count_if(laptop.controller()->book().all(), [&](const auto& one) {
    return worker_of({one.first}).first == bag.leader && one.second->template in<job::Done>() == nullptr;
  });
  must(workers <= most, "B10", bag, std::to_string(workers) + " workers, more than max_parallel");
}

// Once all is well.
void BagTruth::check_hungry(Laptop& laptop, Bag& bag) {
  bool hungry = false;
  if (world_.healed && bag.read.waiting() > 0)
    for (const auto& [id, job] : laptop.controller()->book().all()) {
      const auto [leader, number] = worker_of({id});
      const auto* running = job->in<job::Running>();
      if (leader != bag.leader || running == nullptr || running->move || job->unsure) continue;  // one that moves gets no more
      const bag::Holder* holder = bag.read.find({number, running->attempt.epoch.value});
      if (world_.truth->is_liar(running->attempt.lead().host) || (holder != nullptr && (holder->is_shunned() || !holder->held.empty()))) continue;
      hungry = hungry || std::ranges::none_of(bag.tries, [&](const auto& one) { return one.second.hosts.contains(running->attempt.lead().host.value); });
    }
  if (!hungry) return void(bag.hungry_since = -1);
  if (bag.hungry_since < 0) bag.hungry_since = world_.now;
  must(world_.now - bag.hungry_since < k_hungry, "B6", bag, "tasks wait, and a worker that runs is given none");
}

}  // namespace gridctl::sim
