// SPDX-License-Identifier: Apache-2.0
// Prints a job's output line by line: only some of the lines, with their times, or as JSON.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "cmd/log_reader.hpp"
#include "control/follow/log_times.hpp"

namespace gridctl::cmd {

// Returns true if the command asks for lines, not for the bytes as they are.
[[nodiscard]] bool wants_lines(const Context& context, const Parsed& parsed);

class LogLines {
 public:
  // Fails with usage if --since or --grep cannot be read. `rank`: only the lines of that rank.
  [[nodiscard]] static Result<LogLines> make(Context& context, const Parsed& parsed, JobId job, std::optional<std::uint64_t> rank);
  LogLines(LogLines&&) noexcept;
  ~LogLines();
  // Prints new lines; `all`: including a last one without an end.
  [[nodiscard]] Result<void> print_new(LogReader& reader, bool all);

 private:
  struct Pattern;
  struct Begun {
    std::string text;            // of a line without its end
    std::uint64_t position = 0;  // where the line begins
  };
  LogLines(Context& context, JobId job);
  void take(const LogReader::File& file, std::uint64_t position, std::string_view line);

  Context* context_;
  JobId job_;
  std::optional<std::uint64_t> rank_;
  std::optional<WallTime> since_;
  bool timestamps_ = false;
  std::unique_ptr<Pattern> pattern_;
  std::map<LogReader::File, Begun> begun_;
  std::map<LogReader::File, control::LogTimes> times_;  // read anew with each look
};

}  // namespace gridctl::cmd
