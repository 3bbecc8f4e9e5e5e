// SPDX-License-Identifier: Apache-2.0
#include "cmd/bag_reader.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::uint64_t k_output_piece = 1u << 20;  // bytes printed at once

std::uint64_t output_size(const TaskEnded& task) { return std::uint64_t{task.result.bytes} + task.result.error_bytes; }
}  // namespace

Result<std::vector<TaskEnded>> BagReader::next() {
  std::vector<TaskEnded> ended;
  TRY(read_on([&](TaskEnded one) { ended.push_back(std::move(one)); }));
  return ended;
}

// The last end of each task counts: a failed one may have succeeded since.
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
