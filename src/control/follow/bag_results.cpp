// SPDX-License-Identifier: Apache-2.0
#include "control/follow/bag_results.hpp"

#include <fcntl.h>

#include <algorithm>
#include <set>
#include <span>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "control/follow/bag_files.hpp"

namespace gridctl::control {

namespace {

constexpr std::size_t k_file_head_max = 64, k_file_path_max = 4096;

bool stays_below(const std::string& path) {
  if (path.empty() || path.starts_with('/') || path.find('\0') != std::string::npos) return false;
  const std::vector<std::string> parts = split(path, '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& one) { return one.empty() || one == "." || one == ".."; });
}

Result<TaskFile> file_at(const BagResults& results, const TaskEnded& task, std::uint64_t at, std::uint64_t end) {
  const Error bad = make_error(Code::checkpoint_damaged, "the files of task " + std::to_string(task.index) + " cannot be read");
  TRY_ASSIGN(const std::string head, results.read(task, at, k_file_head_max + k_file_path_max));
  const std::size_t line = head.find('\n');
  if (line == std::string::npos) return bad;
  const std::vector<std::string> words = split(head.substr(0, line), ' ');
  std::size_t length = 0;
  TaskFile file;
  if (words.size() != 3 || !parse_into(words[0], length) || length > k_file_path_max || !parse_into(words[2], file.size)) return bad;
  if (words[1].size() > 4 || words[1].find_first_not_of("01234567") != std::string::npos) return bad;
  for (const char digit : words[1]) file.mode = file.mode * 8 + static_cast<std::uint32_t>(digit - '0');
  file.path = head.substr(line + 1, length);
  file.begin = at + line + 1 + length;
  if (!stays_below(file.path) || file.begin > end || file.size > end - file.begin) return bad;
  return file;
}

}  // namespace

void BagResults::take(const bag::Record& record, const std::function<void(TaskEnded)>& ended) {
  seen(record);
  const auto news = [&](const std::vector<wire::TaskResult>& results, const bag::Worker& worker) {
    std::set<bag::Index> before;
    for (const wire::TaskResult& one : results)
      if (bag_.is_done(one.index) || bag_.has_failed(one.index)) before.insert(one.index);
    bag_.apply(record);
    const bag::Holder* holder = bag_.find(worker);
    for (const wire::TaskResult& one : results) {
      const bool counts = one.succeeded() ? bag_.is_done(one.index) : bag_.has_failed(one.index);
      if (counts && before.insert(one.index).second) ended({one.index, worker, one, holder->host});
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

Result<void> BagResults::read_on(const std::function<void(TaskEnded)>& ended) {
  TRY_ASSIGN(const std::string journal, read_bag_journal(folder_, at_));
  const bag::Scan scan = bag::scan(journal, [&](const bag::Record& record) { take(record, ended); });
  at_ += scan.end;
  return {};
}

Result<bool> BagResults::has_all_of(const TaskEnded& task) const {
  TRY_ASSIGN(const std::uint64_t here, bag_output_size(bag_output_path(folder_, task.worker.number, {task.worker.epoch})));
  return task.result.output_end() == task.result.offset || here >= task.result.output_end();
}

Result<std::string> BagResults::read(const TaskEnded& task, std::uint64_t from, std::uint64_t most) const {
  TRY_ASSIGN(const bool here, has_all_of(task));
  if (!here) return make_error(Code::not_found, "the file is not here yet");
  std::string text(std::min(most, task.result.output_end() - task.result.offset - from), '\0');
  if (text.empty()) return text;
  const os::Path path = bag_output_path(folder_, task.worker.number, {task.worker.epoch});
  TRY_ASSIGN(const os::Fd file, os::open_file(path, O_RDONLY));
  TRY(os::read_exactly(file.get(), std::as_writable_bytes(std::span(text)).data(), text.size(), task.result.offset + from));
  return text;
}

Result<void> each_file(const BagResults& results, const TaskEnded& task,
                       const std::function<Result<void>(const TaskFile&)>& visit) {
  const std::uint64_t end = task.result.output_end() - task.result.offset;
  for (std::uint64_t at = end - task.result.file_bytes; at < end;) {
    TRY_ASSIGN(const TaskFile file, file_at(results, task, at, end));
    TRY(visit(file));
    at = file.begin + file.size;
  }
  return {};
}

}  // namespace gridctl::control
