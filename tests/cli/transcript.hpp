// SPDX-License-Identifier: Apache-2.0
// Transcripts: what a person types and sees, as text files.
//
//   # a comment
//   $ command            run by bash in the transcript's own directory
//   + continuation       of the command, on a line of its own
//   | a line of stdout
//   ! a line of stderr
//   ? 3                  exit code; 0 when there is none
//
// In expected lines <id>, <time>, <n>, <size>, <took> and <any> stand for what differs from run to run; <id:NAME> and
// <word:NAME> also remember it: later lines, and commands as {NAME}, mean the same text. A line that is "..." stands
// for any number of lines. Without any expected line of a stream, that stream must be empty; "| ..." alone lets it be.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gridctl::tests {

struct Command {
  int line = 0;
  std::string text;
  std::vector<std::string> out, err;
  int exit_code = 0;
};

// Throws std::runtime_error naming the line that is none of the above.
[[nodiscard]] std::vector<Command> parse_transcript(const std::string& text);

using Remembered = std::map<std::string, std::string>;
// Empty when the actual text is as expected; else what differs.
[[nodiscard]] std::string compare(const std::vector<std::string>& expected, const std::string& actual,
                                  Remembered& remembered);
[[nodiscard]] std::string fill_in(std::string text, const Remembered& remembered);

}  // namespace gridctl::tests
