// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_output.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/text.hpp"
#include "control/follow/bag_files.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_output_patience_here = std::chrono::seconds{12};  // after the end, for what is still on its way
}

Result<int> print_task_output(Context& context, const registry::Job& job, const std::optional<std::string>& tasks) {
  const auto count = static_cast<std::uint64_t>(job.spec.workload.tasks);
  bag::Ranges wanted{{0, count}};
  if (tasks) {
    TRY_ASSIGN(wanted, bag::parse_ranges(*tasks, count));
  }
  BagReader reader(context.paths().bag_of(job.id));
  TRY_ASSIGN(std::vector<TaskEnded> ended, reader.next());
  std::map<bag::Index, TaskEnded> by_index;  // the last of each: a task that failed may be done since
  for (TaskEnded& one : ended)
    if (wanted.contains(one.index)) by_index[one.index] = std::move(one);
  std::uint64_t missing = 0;
  for (const auto& [index, task] : by_index)
    if (!print_output(context, reader, task)) ++missing;
  if (missing > 0)
    context.note("what " + std::to_string(missing) + " tasks printed is not here: it is fetched while their hosts answer");
  return 0;
}

BagPrinter::BagPrinter(Context& context, const registry::Job& job, const BagPrinting& how)
    : context_(&context), reader_(context.paths().bag_of(job.id)), run_(job.spec.run), how_(how) {}

Result<void> BagPrinter::begin() {
  if (how_.items) {
    TRY_ASSIGN(const std::string items, control::read_bag_items(context_->paths().bag_of(how_.id)));
    for (std::size_t at = 0; at < items.size();) {
      const std::size_t end = items.find('\0', at);
      items_.push_back(items.substr(at, end - at));
      at = end + 1;
    }
  }
  if (how_.joblog.empty()) return {};
  TRY_ASSIGN(joblog_, os::open_file(how_.joblog, O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return os::write_all(joblog_.get(), as_bytes("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"));
}

// As GNU parallel writes it: `parallel --resume` reads it.
Result<void> BagPrinter::log(const TaskEnded& task) {
  if (!joblog_.valid()) return {};
  char times[64];
  std::snprintf(times, sizeof times, "%.3f\t%10.3f", static_cast<double>(task.result.began.ms) / 1000,
                static_cast<double>(task.result.ms) / 1000);
  std::string command = run_;
  if (task.index < items_.size())
    for (std::size_t at = command.find("{}"); at != std::string::npos; at = command.find("{}", at)) {
      const std::string item = shell_quote(items_[task.index]);
      command.replace(at, 2, item);
      at += item.size();
    }
  const int exit_code = task.result.end == wire::TaskEnd::ended ? task.result.exit_code : 255;
  return os::write_all(joblog_.get(), as_bytes(std::to_string(task.index + 1) + "\t" + task.host + "\t" + times + "\t0\t" +
                                               std::to_string(task.result.bytes) + "\t" + std::to_string(exit_code) + "\t" +
                                               std::to_string(task.result.signal) + "\t" + command + "\n"));
}

Result<bool> BagPrinter::print_new(bool final, const std::function<void()>& before) {
  TRY_ASSIGN(std::vector<TaskEnded> ended, reader_.next());
  if (how_.only_new && std::exchange(first_, false)) ended.clear();
  for (TaskEnded& one : ended) {
    TRY(log(one));
    if (how_.silent) continue;
    waiting_.emplace(how_.keep_order ? one.index : order_, std::move(one));
    ++order_;
  }
  const BootTime now = context_->clock.boot();
  if (final && !final_since_) final_since_ = now;
  const bool give_up = final_since_ && now - *final_since_ > k_output_patience_here;
  bool erased = false;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (how_.keep_order && at->first != next_ && !give_up) break;
    if (!std::exchange(erased, true)) before();
    if (!print_output(*context_, reader_, at->second) && !give_up) {
      if (how_.keep_order) break;
      ++at;
      continue;
    }
    next_ = at->first + 1;
    at = waiting_.erase(at);
  }
  return waiting_.empty() || give_up || (final && how_.keep_order && waiting_.begin()->first != next_);
}

std::string BagPrinter::progress() const {
  const bag::Progress now = reader_.bag().progress();
  const std::uint64_t over = now.done + now.failed;
  return std::to_string(over) + " of " + std::to_string(now.tasks) + " tasks (" +
         std::to_string(now.tasks == 0 ? 100 : over * 100 / now.tasks) + " %)" +
         (now.failed > 0 ? ", " + std::to_string(now.failed) + " failed" : "");
}

}  // namespace gridctl::cmd
