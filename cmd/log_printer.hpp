// SPDX-License-Identifier: Apache-2.0
// Prints a job's output: raw bytes into pipes and files, complete sanitised lines onto a terminal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "cmd/context.hpp"
#include "cmd/log_reader.hpp"

namespace gridctl::cmd {

// Selects the lines of one rank in a job's output, which begin with "[rank 3] ", without that. Lines without a rank
// (setup, a job with one process) count as rank 0's.
class RankLines {
 public:
  explicit RankLines(std::uint64_t rank) : rank_(rank), label_("[rank " + std::to_string(rank) + "] ") {}
  [[nodiscard]] std::string of(std::string_view bytes);
  [[nodiscard]] std::string rest();  // the last line, when it has no end yet

 private:
  void take(std::string_view line, std::string& into) const;
  std::uint64_t rank_;
  std::string label_, partial_;
};

class LogPrinter {
 public:
  explicit LogPrinter(Context& context, std::optional<std::uint64_t> rank = {}) : context_(&context) {
    if (rank) rank_.emplace(*rank);
  }
  // Prints new output. `before` is called once before its first byte.
  [[nodiscard]] Result<void> print_new(LogReader& reader, const std::function<void()>& before = {}, bool all = false);
  // Prints the last line if it has no end yet.
  void flush();

 private:
  void put(AttemptNumber attempt, std::string_view bytes);
  void put_lines(std::string_view bytes);
  Context* context_;
  AttemptNumber last_{};
  std::string partial_;  // of the line not finished, only with a terminal
  std::optional<RankLines> rank_;
};

}  // namespace gridctl::cmd
