// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_output.hpp"

#include <fcntl.h>

#include "cmd/bag_log.hpp"
#include "os/entries.hpp"

namespace gridctl::cmd {

namespace {
constexpr Duration k_output_patience_here = std::chrono::seconds{12};  // after the end, for what is still on its way
}

Result<int> print_task_output(Context& context, const registry::Job& job, const std::optional<std::string>& tasks) {
  BagReader reader(context.paths().bag_of(job.id));
  TRY_ASSIGN(const auto by_index, reader.ended(static_cast<std::uint64_t>(job.spec.workload.tasks), tasks));
  std::uint64_t missing = 0;
  for (const auto& [index, task] : by_index)
    if (!print_output(context, reader, task)) ++missing;
  if (missing > 0)
    context.note("the output of " + std::to_string(missing) +
                 " tasks is not here yet: gridctl fetches it while their hosts answer");
  return 0;
}

BagPrinter::BagPrinter(Context& context, const registry::Job& job, const WatchOptions& how)
    : context_(&context), reader_(context.paths().bag_of(job.id)), spec_(job.spec), how_(how) {}

Result<void> BagPrinter::begin(const JobId& id) {
  if (spec_.tasks->items != job::ItemForm::none && (!how_.joblog.empty() || !how_.results.empty())) {
    TRY_ASSIGN(items_, bag_items(context_->paths().bag_of(id)));
  }
  if (how_.joblog.empty()) return {};
  TRY_ASSIGN(joblog_, os::open_file(how_.joblog, O_RDWR | O_CREAT | (how_.joblog_goes_on ? O_APPEND : O_TRUNC), 0644));
  TRY_ASSIGN(const os::FileStatus status, os::status_of(joblog_.get()));
  if (status.size > 0) return {};
  return os::write_all(joblog_.get(), as_bytes("Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"));
}

std::string BagPrinter::item_of(const TaskEnded& task) const {
  return task.index < items_.size() ? items_[task.index] : "";
}

// Returns false if its output is not here yet.
Result<bool> BagPrinter::show(const TaskEnded& task) {
  if (!how_.results.empty()) {
    const Result<void> kept = keep_results(how_.results, reader_, task, item_of(task));
    if (!kept && kept.error().code == Code::not_found) return false;
    TRY(kept);
  }
  return !how_.logs || print_output(*context_, reader_, task);
}

Result<bool> BagPrinter::print_new(bool final, const std::function<void()>& before) {
  TRY_ASSIGN(std::vector<TaskEnded> ended, reader_.next());
  if (!how_.from_start && std::exchange(first_, false)) ended.clear();
  for (TaskEnded& one : ended) {
    if (joblog_.valid() && one.worker != k_logged_worker)
      TRY(os::write_all(joblog_.get(), as_bytes(joblog_line(spec_, one, item_of(one)))));
    if (!how_.logs && how_.results.empty()) continue;
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
    TRY_ASSIGN(const bool shown, show(at->second));
    if (!shown && !give_up) {
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
  const auto forecast = reader_.forecast();
  return std::to_string(over) + " of " + std::to_string(now.tasks) + " tasks (" +
         std::to_string(now.tasks == 0 ? 100 : over * 100 / now.tasks) + " %)" +
         (now.failed > 0 ? ", " + std::to_string(now.failed) + " failed" : "") +
         (forecast ? "; " + in_words(*forecast) : "");
}

}  // namespace gridctl::cmd
