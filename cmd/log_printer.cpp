// SPDX-License-Identifier: Apache-2.0
#include "cmd/log_printer.hpp"

#include <utility>

#include "base/text.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_partial_max = 4096;  // bytes of an unfinished line held back from a terminal
}

Result<void> LogPrinter::print_new(LogReader& reader, const std::function<void()>& before, bool all) {
  bool any = false;
  const auto print = [&](AttemptNumber attempt, std::string_view bytes) {
    if (!std::exchange(any, true) && before) before();
    put(attempt, bytes);
  };
  return reader.read_new(print, all);
}

void RankLines::take(std::string_view line, std::string& into) const {
  if (line.starts_with(label_)) into += line.substr(label_.size());
  else if (rank_ == 0 && !line.starts_with("[rank ")) into += line;
}

std::string RankLines::of(std::string_view bytes) {
  std::string lines;
  partial_ += bytes;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
    take(std::string_view(partial_).substr(begin, end + 1 - begin), lines);
  partial_.erase(0, begin);
  return lines;
}

std::string RankLines::rest() {
  std::string last;
  take(partial_, last);
  partial_.clear();
  return last;
}

void LogPrinter::put(AttemptNumber attempt, std::string_view bytes) {
  if (last_.value != 0 && attempt != last_) {
    flush();
    context_->note(context_->err_style(ui::Paint::dim, "--- attempt " + std::to_string(attempt.value) + " ---"));
  }
  last_ = attempt;
  const std::string chosen = rank_ ? rank_->of(bytes) : std::string();
  if (rank_) bytes = chosen;
  if (context_->terminal_out) put_lines(bytes);
  else context_->print(bytes);
}

void LogPrinter::put_lines(std::string_view bytes) {
  for (const char c : bytes) {
    const bool carriage_return = !partial_.empty() && partial_.back() == '\r' && c != '\n';
    if (carriage_return) partial_.back() = '\n';  // progress bars overwrite their line; a log keeps each
    partial_ += c;
  }
  std::size_t end = partial_.rfind('\n');
  if (end == std::string::npos && partial_.size() < k_partial_max) return;
  if (end == std::string::npos) end = partial_.size() - 1;
  context_->print(sanitize_lines(std::string_view(partial_).substr(0, end + 1)));
  partial_.erase(0, end + 1);
}

void LogPrinter::flush() {
  if (rank_) {
    const std::string last = rank_->rest();
    if (context_->terminal_out) partial_ += last;
    else context_->print(last);
  }
  if (!partial_.empty()) context_->print(sanitize_lines(partial_) + "\n");
  partial_.clear();
}

}  // namespace gridctl::cmd
