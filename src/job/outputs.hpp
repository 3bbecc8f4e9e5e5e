// SPDX-License-Identifier: Apache-2.0
// Selects the files of a job's working directory to fetch: `outputs` of the job file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/names.hpp"
#include "base/time.hpp"

namespace gridctl::job {

enum class OutputWhen : std::uint8_t { always, success, failure };
inline constexpr Names<OutputWhen, OutputWhen::failure> output_when_name{"always", "success", "failure"};

struct Output {
  std::string from;  // a pattern relative to the working directory, as in .gitignore; a directory means all in it
  OutputWhen when = OutputWhen::always;
  Duration sync{};  // while the job runs, so often; 0: at the end only
  bool operator==(const Output&) const = default;
};

// Returns the patterns wanted at such an end.
[[nodiscard]] std::vector<std::string> outputs_at_end(const std::vector<Output>& outputs, bool success);
// Returns the patterns wanted while the job runs, and how often: the shortest of their intervals, 0 if there are none.
struct OutputSync {
  std::vector<std::string> patterns;
  Duration every{};
};
[[nodiscard]] OutputSync outputs_while_running(const std::vector<Output>& outputs);

}  // namespace gridctl::job
