// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_reader.hpp"

#include <fcntl.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/lines.hpp"
#include "control/follow/bag_files.hpp"
#include "os/entries.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_output_piece = 1u << 20;  // bytes printed at once

std::uint64_t output_size(const TaskEnded& task) { return std::uint64_t{task.result.bytes} + task.result.error_bytes; }
}  // namespace

void BagReader::take(const bag::Record& record, std::vector<TaskEnded>& ended) {
  pace_.take(record);
  const auto news = [&](const std::vector<wire::TaskResult>& results, const bag::Worker& worker) {
    std::set<bag::Index> before;
    for (const wire::TaskResult& one : results)
      if (bag_.is_done(one.index) || bag_.has_failed(one.index)) before.insert(one.index);
    bag_.apply(record);
    const bag::Holder* holder = bag_.find(worker);
    for (const wire::TaskResult& one : results) {
      const bool counts = one.succeeded() ? bag_.is_done(one.index) : bag_.has_failed(one.index);
      if (counts && before.insert(one.index).second) ended.push_back({one.index, worker, one, holder->host});
    }
  };
  if (const auto* told = std::get_if<bag::Told>(&record)) return news(told->results, told->worker);
  const auto* closed = std::get_if<bag::Closed>(&record);
  if (closed == nullptr || closed->suspects.empty()) return bag_.apply(record);
  std::vector<wire::TaskResult> died(closed->suspects.size());
  for (std::size_t i = 0; i < died.size(); ++i) {
    died[i].index = closed->suspects[i];
    died[i].end = wire::TaskEnd::unstarted;
  }
  news(died, closed->worker);
}

Result<std::vector<TaskEnded>> BagReader::next() {
  std::vector<TaskEnded> ended;
  TRY_ASSIGN(const std::string journal, control::read_bag_journal(folder_, at_));
  const bag::Scan scan = bag::scan(journal, [&](const bag::Record& record) { take(record, ended); });
  at_ += scan.end;
  return ended;
}

// The last end of each task counts: one that had failed may be done since.
Result<std::map<bag::Index, TaskEnded>> BagReader::ended(std::uint64_t count, const std::optional<std::string>& wanted) {
  bag::Ranges ranges{{0, count}};
  if (wanted) {
    TRY_ASSIGN(ranges, bag::parse_ranges(*wanted, count));
  }
  TRY_ASSIGN(std::vector<TaskEnded> all, next());
  std::map<bag::Index, TaskEnded> by_index;
  for (TaskEnded& one : all)
    if (ranges.contains(one.index)) by_index[one.index] = std::move(one);
  return by_index;
}

Result<std::string> BagReader::read(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const {
  const os::Path path = control::bag_output_path(folder_, task.worker.number, {task.worker.epoch});
  TRY_ASSIGN(const std::uint64_t here, control::bag_output_size(path));
  const wire::TaskResult& result = task.result;
  if (here < result.output_end()) return make_error(Code::not_found, "it is not here yet");
  std::string text(std::min(most, result.output_end() - result.offset - from), '\0');
  if (text.empty()) return text;
  TRY_ASSIGN(const os::Fd file, os::open_file(path, O_RDONLY));
  TRY(os::read_exactly(file.get(), std::as_writable_bytes(std::span(text)).data(), text.size(), result.offset + from));
  return text;
}

Result<std::string> BagReader::output(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const {
  return read(task, from, std::min(most, output_size(task) - from));
}

bool print_output(Context& context, const BagReader& reader, const TaskEnded& task) {
  std::uint64_t at = 0;
  do {
    const bool error = at >= task.result.bytes;
    const std::uint64_t left = (error ? output_size(task) : task.result.bytes) - at;
    const Result<std::string> text = reader.output(task, at, std::min(k_output_piece, left));
    if (!text) return at > 0;  // a file that shrinks meanwhile
    if (error) context.write_err(context.terminal_err ? sanitize_lines(*text) : *text);
    else context.print(context.terminal_out ? sanitize_lines(*text) : *text);
    at += text->size();
    if (text->empty()) return true;
  } while (at < output_size(task) && !context.reader_gone());
  return true;
}

}  // namespace gridctl::cmd
