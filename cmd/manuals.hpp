// SPDX-License-Identifier: Apache-2.0
// Carries the manual pages as text in the program: `gridctl help TOPIC` needs neither man nor a network.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::cmd {

class Context;

struct Manual {
  std::string_view name;  // "gridctl-job"
  int section;
  std::string_view text;  // 78 columns wide
};

// Sorted by name and section.
[[nodiscard]] std::span<const Manual> manuals();
// Finds a manual by "job.5", "job(5)", "gridctl-job.5", or a name without its section if only one page has it;
// otherwise nullptr.
[[nodiscard]] const Manual* find_manual(std::string_view topic);
// Returns the shortest word for each page that find_manual() accepts.
[[nodiscard]] std::vector<std::string> manual_topics();
// Writes to standard output; on a terminal through $PAGER, otherwise `less` if there is one.
[[nodiscard]] Result<int> show_manual(Context& context, const Manual& manual);

}  // namespace gridctl::cmd
