// SPDX-License-Identifier: Apache-2.0
// Reads the last lines of a failed program and decides what they mean for the next attempt. Pure: a table of patterns.
//
// Only the program's last words count. A pattern is tried on the line that ends the output (or on the exception that
// ends a traceback), without launchers' summaries and the usual trailers; a line in the middle of a log means nothing,
// and words that match no row change nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/names.hpp"

namespace gridctl::job {

// Names the next step after these words.
enum class Advice : std::uint8_t {
  none,        // nothing is known
  restart,     // the next attempt may well succeed, on this host too
  stop,        // each further attempt would end in the same way
  blame_host,  // this host is at fault: another one may do
};
inline constexpr Names<Advice, Advice::blame_host> advice_name{"none", "restart", "stop", "blame_host"};

struct LastWords {
  Advice advice = Advice::none;
  std::string cause{};  // for people: "the GPU ran out of memory"
  std::string line{};   // the line that says so, cut to k_last_line_max bytes, without control characters
  bool operator==(const LastWords&) const = default;
};

inline constexpr std::size_t k_last_line_max = 200;

// `exit_code`: as the shell reports it; 137 makes "Killed" believable.
[[nodiscard]] LastWords judge_last_words(std::string_view output, int exit_code);
// Returns whether the program ended because the directory `path` already existed, which the program creates itself.
[[nodiscard]] bool makes_directory(std::string_view output, std::string_view path);
// Returns text such as: the GPU ran out of memory ("torch.OutOfMemoryError: CUDA out of memory…"); empty without
// advice.
[[nodiscard]] std::string in_words(const LastWords& words);

}  // namespace gridctl::job
