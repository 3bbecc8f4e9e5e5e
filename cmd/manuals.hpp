// SPDX-License-Identifier: Apache-2.0
// The manual pages as text, carried in the program: `gridctl help TOPIC` needs neither man nor a network.
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

// By name and section.
[[nodiscard]] std::span<const Manual> manuals();
// By "job.5", "job(5)", "gridctl-job.5", or a name without its section where only one page has it; else nullptr.
[[nodiscard]] const Manual* find_manual(std::string_view topic);
// The shortest word for each page that find_manual() takes.
[[nodiscard]] std::vector<std::string> manual_topics();
// On standard output; on a terminal through $PAGER, else `less` where there is one.
[[nodiscard]] Result<int> show_manual(Context& context, const Manual& manual);

}  // namespace gridctl::cmd
