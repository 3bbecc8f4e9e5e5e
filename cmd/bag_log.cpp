// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_log.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "base/numbers.hpp"
#include "base/text.hpp"
#include "control/follow/bag_files.hpp"
#include "job/task_template.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_joblog_max = 1u << 30;        // bytes
constexpr std::uint64_t k_output_piece_max = 1u << 20;  // read at once
constexpr std::size_t k_seq = 0, k_exit = 6, k_signal = 7, k_fields = 9;
constexpr std::size_t k_folder_name_max = 255, k_folder_name_kept = 200;  // bytes
constexpr std::size_t k_in_one_record = 1000;
constexpr int k_percent_least = 3;  // failed tasks, before a share of all ends a bag: as parallel has it

// Names folders as parallel does. A name that would lead elsewhere, or that no file system accepts, is changed: the
// text of an item may come from strangers.
std::string folder_name(std::string_view value, bag::Index index) {
  std::string name;
  for (const char c : value) {
    if (c == '\\') name += "\\\\";
    else if (c == '\t') name += "\\t";
    else if (c == '/') name += "\\_";
    else name += c;
  }
  if (name.empty() || name == "." || name == "..") return "\\" + name;
  if (name.size() > k_folder_name_max) name = name.substr(0, k_folder_name_kept) + "\\" + std::to_string(index + 1);
  return name;
}

// The first line has no result, nor does a torn one.
std::vector<wire::TaskResult> logged_results(const std::string& text, std::uint64_t tasks) {
  std::map<bag::Index, wire::TaskResult> found;  // the last of each: a task may have been tried again
  for (const std::string& line : split_lines(text)) {
    const std::vector<std::string> fields = split(line, '\t');
    std::uint64_t seq = 0;
    wire::TaskResult one;
    if (fields.size() < k_fields || !parse_into(fields[k_seq], seq) || seq < 1 || seq > tasks ||
        !parse_into(fields[k_exit], one.exit_code) || !parse_into(fields[k_signal], one.signal))
      continue;
    one.index = seq - 1;
    found[one.index] = one;
  }
  std::vector<wire::TaskResult> results;
  for (const auto& [index, one] : found) results.push_back(one);
  return results;
}

}  // namespace

Result<std::vector<std::string>> bag_items(const os::Path& folder) {
  TRY_ASSIGN(const std::string text, control::read_bag_items(folder));
  std::vector<std::string> items = split(text, '\0');
  if (!items.empty()) items.pop_back();  // a NUL ends each
  return items;
}

std::string joblog_line(const job::Spec& spec, const TaskEnded& task, const std::string& item) {
  char times[64];
  std::snprintf(times, sizeof times, "%.3f\t%10.3f", static_cast<double>(task.result.began.ms) / 1000,
                static_cast<double>(task.result.ms) / 1000);
  const std::string command =
      job::TaskTemplate(spec.run, spec.tasks->render).fill(task.index, item, 1, true);
  const int exit_code = task.result.end == wire::TaskEnd::ended ? task.result.exit_code : 255;
  return std::to_string(task.index + 1) + "\t" + task.host + "\t" + times + "\t0\t" +
         std::to_string(task.result.bytes) + "\t" + std::to_string(exit_code) + "\t" +
         std::to_string(task.result.signal) + "\t" + command + "\n";
}

Result<std::string> records_of_joblog(const os::Path& file, const job::Spec& spec) {
  if (!os::exists(file)) return std::string();
  TRY_ASSIGN(const std::string text, os::read_file(file, k_joblog_max));
  std::string records = bag::encode(bag::Joined{k_logged_worker, 0, "joblog"});
  bag::Ordered ordered{k_logged_worker, wire::OrderKind::grant, {}, 0};
  bag::Told told{k_logged_worker, 0, {}};
  const auto write = [&] {
    records += bag::encode(ordered) + bag::encode(told);
    ordered = {k_logged_worker, wire::OrderKind::grant, {}, ordered.number + ordered.ranges.size()};
    told = {k_logged_worker, told.from + told.results.size(), {}};
  };
  for (wire::TaskResult& one : logged_results(text, static_cast<std::uint64_t>(spec.workload.tasks)))
    for (int tries = one.succeeded() ? 1 : spec.tasks->retries + 1; tries > 0; --tries) {
      one.order = ordered.number + ordered.ranges.size();
      ordered.ranges.push_back({one.index, 1});
      told.results.push_back(one);
      if (told.results.size() == k_in_one_record) write();
    }
  write();
  return records + bag::encode(bag::Closed{k_logged_worker, {}});
}

Result<void> keep_results(const os::Path& folder, const BagReader& reader, const TaskEnded& task,
                          const std::string& item) {
  os::Path into = folder;
  const std::vector<std::string> columns = job::task_columns(item);
  for (std::size_t i = 0; i < columns.size(); ++i) into = into / std::to_string(i + 1) / folder_name(columns[i], task.index);
  TRY(os::make_directories(into, 0755));
  const std::uint64_t ends[] = {task.result.bytes, std::uint64_t{task.result.bytes} + task.result.error_bytes};
  std::uint64_t at = 0;
  for (const std::size_t stream : {0, 1}) {
    TRY_ASSIGN(const os::Fd file, os::open_file(into / (stream == 0 ? "stdout" : "stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0644));
    while (at < ends[stream]) {
      TRY_ASSIGN(const std::string text, reader.output(task, at, std::min(k_output_piece_max, ends[stream] - at)));
      if (text.empty()) break;
      TRY(os::write_all(file.get(), as_bytes(text)));
      at += text.size();
    }
  }
  TRY_ASSIGN(const os::Fd seq, os::open_file(into / "seq", O_WRONLY | O_CREAT | O_TRUNC, 0644));
  return os::write_all(seq.get(), as_bytes(std::to_string(task.index + 1)));
}

Result<int> fails_of_halt(std::string_view text, int tasks) {
  if (text == "never" || text == "0") return -1;
  std::string_view rest = text;
  for (const std::string_view when : {"soon,", "now,"})
    if (rest.starts_with(when)) rest.remove_prefix(when.size());
  int number = 0;
  if (!rest.starts_with("fail=") || rest.size() == text.size())
    return make_error(Code::usage, "--halt: expected never, soon,fail=N, now,fail=N or soon,fail=N%");
  rest.remove_prefix(5);
  const bool share = rest.ends_with('%');
  if (share) rest.remove_suffix(1);
  if (!parse_into(rest, number) || number < 1 || (share && number > 100))
    return make_error(Code::usage, "--halt: expected a number of at least 1 after fail=");
  if (!share) return number - 1;
  return std::max(k_percent_least, static_cast<int>((std::int64_t{tasks} * number + 99) / 100)) - 1;
}

}  // namespace gridctl::cmd
