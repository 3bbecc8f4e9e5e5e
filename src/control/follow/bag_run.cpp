// SPDX-License-Identifier: Apache-2.0
#include "control/follow/bag_run.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"

namespace gridctl::control {

namespace {
constexpr const char* k_journal_work = "bag-journal";
constexpr std::size_t k_order_items_most = 512, k_order_bytes_most = 128 * 1024;
constexpr std::size_t k_ask_bytes_most = 512 * 1024;  // of items in one request, which is less than a frame
// Tasks that others hold may already be done but not reported, so they are not stolen before this time.
constexpr Duration k_idle_before_steal = std::chrono::milliseconds{700};
constexpr Duration k_write_pause = std::chrono::seconds{2};
}  // namespace

Result<std::shared_ptr<BagRun>> BagRun::open(const World& world, const TrackedJob& leader) {
  std::shared_ptr<BagRun> run(new BagRun(world, leader));
  TRY_ASSIGN(const std::string journal, world.folders.bag_journal(leader.id()));
  std::string good;
  const bag::Scan scan = bag::scan(journal, [&](const bag::Record& record) { run->bag_.apply(record); });
  if (scan.damaged()) {
    good = bag::k_magic;
    (void)bag::scan(journal, [&](const bag::Record& record) { good += bag::encode(record); });
    TRY(world.folders.bag_replace(leader.id(), good));
    const bag::Progress now = run->bag_.progress();
    run->repaired_ = std::to_string(scan.bad_bytes) + " bytes of the bag's journal are damaged and were skipped; " +
                     std::to_string(now.done) + " of " + std::to_string(now.tasks) +
                     " tasks are known to be done; the others run again unless their hosts still have the results";
  }
  TRY(run->add_tasks(leader));
  return run;
}

Result<void> BagRun::add_tasks(const TrackedJob& leader) {
  const auto tasks = static_cast<std::uint64_t>(leader.spec().workload.tasks);
  const bool has_items = leader.spec().tasks->items != job::ItemForm::none;
  const bool grows = bag_.progress().tasks < tasks;
  if (!grows && (!has_items || !item_ends_.empty())) return {};
  if (has_items) {
    TRY_ASSIGN(std::string items, world_.folders.bag_items(leader.id()));
    std::vector<std::uint64_t> ends;
    for (std::size_t i = 0; i < items.size(); ++i)
      if (items[i] == '\0') ends.push_back(i);
    if (ends.size() < std::max(tasks, bag_.progress().tasks))
      return make_error(Code::state_unreadable, "the bag has fewer items than tasks");
    items_ = std::move(items);
    item_ends_ = std::move(ends);
  }
  if (grows) add(bag::Begun{tasks, static_cast<std::uint64_t>(leader.spec().tasks->retries), leader.spec().tasks->raise.any()});
  return {};
}

std::string_view BagRun::item(bag::Index index) const {
  const std::uint64_t from = index == 0 ? 0 : item_ends_[index - 1] + 1;
  return std::string_view(items_).substr(from, item_ends_[index] - from);
}

void BagRun::add(const bag::Record& record) {
  bag_.apply(record);
  unsaved_ += bag::encode(record);
}

void BagRun::join(const bag::Worker& worker, const JobId& job, const job::Attempt& attempt, std::uint64_t level) {
  Seat seat{job, attempt.lead().host};
  if (const bag::Holder* known = bag_.find(worker); known == nullptr) {
    add(bag::Joined{worker, attempt.number.value, attempt.lead().host.value, level});
    seat.seen = 0;
  } else {
    seat.orders = known->next_order();
    seat.results = known->results;
  }
  if (const auto end = world_.folders.bag_output_end(id_, worker.number, {worker.epoch})) seat.output_at = *end;
  seats_.emplace(worker, std::move(seat));
}

void BagRun::close_forgotten(const JobBook& book) {
  std::vector<bag::Worker> forgotten;
  for (const auto& [worker, holder] : bag_.workers()) {
    if (!holder.open || seats_.contains(worker)) continue;
    const TrackedJob* job = book.find(worker.number == 1 ? id_ : registry::twin_id(id_, static_cast<int>(worker.number)));
    const job::Attempt* attempt = job == nullptr ? nullptr : job->state().attempt();
    const bool is_known = (attempt != nullptr && attempt->epoch.value == worker.epoch) ||
                          (job != nullptr && std::ranges::any_of(job->state().pending_cleanups, [&](const job::PendingCleanup& end) {
                             return end.epoch.value == worker.epoch;
                           }));
    if (!is_known) forgotten.push_back(worker);
  }
  for (const bag::Worker& worker : forgotten) add(bag::Closed{worker, {}});
}

// Some of its records or results were lost here, so the host's report is trusted.
void BagRun::resend(const bag::Worker& worker, Seat& seat, const wire::BagTold& told) {
  add(bag::Rebased{worker, told.orders_seen, told.results_from});
  seat.orders = told.orders_seen;
}

// Returns the number of held results that may count.
std::size_t BagRun::with_output(const Seat& seat) const {
  const std::vector<wire::TaskResult>& results = seat.held->results;
  if (world_.clock.boot() - seat.held_since > output_patience_) return results.size();
  const auto late = std::find_if(results.begin(), results.end(), [&](const wire::TaskResult& one) {
    return one.output_end() > one.offset && one.output_end() > seat.output_at;
  });
  return static_cast<std::size_t>(late - results.begin());
}

void BagRun::count(const bag::Worker& worker, Seat& seat) {
  const auto here = static_cast<std::ptrdiff_t>(seat.held ? with_output(seat) : 0);
  if (here == 0) return;
  std::vector<wire::TaskResult>& held = seat.held->results;
  std::vector<wire::TaskResult> results(held.begin(), held.begin() + here);
  held.erase(held.begin(), held.begin() + here);
  seat.pace.take(results);
  add(bag::Told{worker, seat.held->results_from, std::move(results)});
  seat.held->results_from += static_cast<std::uint64_t>(here);
  seat.held_since = world_.clock.boot();
  if (held.empty()) seat.held.reset();
}

bool BagRun::take(const bag::Worker& worker, Seat& seat, const wire::BagTold& told) {
  if (told.error) return seat.ended.has_value();
  const bag::Holder* holder = bag_.find(worker);
  // A host may know more than the journal only if an earlier daemon told it. A host that claims so later lies, and
  // could name any task as done: it gets nothing more, and its tasks go to other workers.
  if (seat.seen && (told.orders_seen > holder->next_order() || told.results_from > holder->results)) {
    if (holder->open) {
      report(make_error(Code::protocol_violation, seat.host.value + " reports orders that it never received"),
             "while asking for results of tasks");
      add(bag::Closed{worker, {}});
    }
    return seat.ended.has_value();
  }
  const bool unknown_follows =
      std::any_of(holder->orders.begin(), holder->orders.end(), [&](const wire::BagOrder& one) {
        return one.count == 0 && holder->orders_from + static_cast<std::uint64_t>(&one - holder->orders.data()) >= told.orders_seen;
      });
  if (told.orders_seen > holder->next_order() || told.orders_seen < holder->orders_from || unknown_follows ||
      told.results_from > holder->results)
    resend(worker, seat, told);
  seat.seen = told.orders_seen;
  seat.running = told.running;
  seat.output_end = std::max(seat.output_at, told.output_end);
  seat.output_at = std::max(seat.output_at, std::min(told.output_begin, told.output_end));  // the host has dropped those before
  if (!seat.held && !told.results.empty()) {
    seat.held = told;
    seat.held_since = world_.clock.boot();
  }
  count(worker, seat);
  return told.over && seat.results >= told.results_end;
}

// Cuts orders with items so that each fits into a request.
bag::Ordered BagRun::cut(bag::Ordered order) const {
  if (item_ends_.empty() || order.kind != wire::OrderKind::grant) return order;
  std::vector<bag::Range> pieces;
  for (const bag::Range& range : order.ranges) {
    bag::Range piece{range.first, 0};
    std::size_t bytes = 0;
    for (bag::Index index = range.first; index < range.end(); ++index) {
      const std::size_t size = item(index).size();
      if (piece.count > 0 && (piece.count == k_order_items_most || bytes + size > k_order_bytes_most)) {
        pieces.push_back(piece);
        piece = {index, 0};
        bytes = 0;
      }
      ++piece.count;
      bytes += size;
    }
    pieces.push_back(piece);
  }
  order.ranges = std::move(pieces);
  return order;
}

void BagRun::give(const bag::Worker& worker) {
  const auto seat = seats_.find(worker);
  if (seat == seats_.end() || seat->second.ended || seat->second.leaves || !seat->second.seen) return;
  const bag::Holder* holder = bag_.find(worker);
  std::optional<BootTime>& idle_since = seat->second.idle_since;
  const BootTime now = world_.clock.boot();
  if (const auto order = bag_.share(worker, seat->second.pace)) {
    idle_since.reset();
    return add(cut(*order));
  }
  if (holder == nullptr || !holder->held.empty()) return idle_since.reset();
  if (!idle_since) idle_since = now;
  if (now - *idle_since < k_idle_before_steal) return;
  std::map<bag::Worker, bag::Pace> paces;
  for (const auto& [other, its] : seats_) paces[other] = its.pace;
  const auto steal = bag_.steal(worker, paces);
  if (!steal) return;
  if (steal->revoke) add(*steal->revoke);
  add(cut(steal->grant));
}

bool BagRun::empty(const bag::Worker& worker) {
  const auto found = seats_.find(worker);
  const bag::Holder* holder = bag_.find(worker);
  if (found == seats_.end() || holder == nullptr || !holder->open || !found->second.seen) return false;
  const Seat& seat = found->second;
  if (const auto revoke = bag_.recall(worker, seat.running, seat.pace)) add(*revoke);
  return holder->held.empty() && seat.running.empty() && *seat.seen >= holder->next_order();
}

Duration BagRun::busy_for(const bag::Worker& worker) const {
  const bag::Holder* holder = bag_.find(worker);
  const auto seat = seats_.find(worker);
  if (holder == nullptr || seat == seats_.end()) return Duration::zero();
  const double lasts_s = static_cast<double>(holder->held.count()) * seat->second.pace.task_s;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(lasts_s));
}

wire::BagAsk BagRun::ask(const bag::Worker& worker, const Seat& seat) const {
  const bag::Holder& holder = *bag_.find(worker);
  const std::uint32_t most = seat.held ? 0 : wire::k_bag_results_max;
  wire::BagAsk ask{seat.job, {worker.epoch}, seat.orders, {}, holder.results, most, seat.output_at};
  if (!seat.seen || seat.ended) return ask;
  ask.orders_from = *seat.seen;
  std::size_t bytes = 0;
  for (std::uint64_t number = *seat.seen; number < seat.orders; ++number) {
    wire::BagOrder order = holder.orders.at(number - holder.orders_from);
    if (order.kind == wire::OrderKind::grant && !item_ends_.empty())
      for (bag::Index index = order.first; index < order.first + order.count; ++index) {
        order.items.emplace_back(item(index));
        bytes += order.items.back().size() + 3;
      }
    ask.orders.push_back(std::move(order));
    if (ask.orders.size() == wire::k_bag_orders_max || bytes > k_ask_bytes_most) break;
  }
  return ask;
}

void BagRun::save(Attempts& attempts, const std::function<void()>& then) {
  if (saving_ || unsaved_.empty()) return;
  std::map<bag::Worker, std::pair<std::uint64_t, std::uint64_t>> marks;
  for (const auto& [worker, seat] : seats_)
    if (const bag::Holder* holder = bag_.find(worker))
      marks[worker] = {holder->next_order(), holder->results};
  saving_ = attempts.in_background(
      id_, k_journal_work, {os::Lane::Kind::urgent, {}},
      [folders = &world_.folders, id = id_, records = unsaved_] { return folders->bag_append(id, records); },
      [weak = weak_from_this(), &attempts, marks, size = unsaved_.size(), then](TrackedJob& job, const Result<void>& written) {
        const std::shared_ptr<BagRun> mine = weak.lock();
        if (mine == nullptr) return;
        mine->saving_ = false;
        mine->blocked_ = !written;
        if (!written) {
          report(written.error(), "while writing the journal of bag " + job.id().value);
          return attempts.try_later(job.id(), k_journal_work, k_write_pause);
        }
        mine->unsaved_.erase(0, size);
        for (const auto& [worker, mark] : marks)
          if (const auto seat = mine->seats_.find(worker); seat != mine->seats_.end())
            std::tie(seat->second.orders, seat->second.results) = mark;
        then();
      });
}

}  // namespace gridctl::control
