// SPDX-License-Identifier: Apache-2.0
// Declares the functions that the commands of `store` share.
#pragma once

#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "registry/all_records.hpp"
#include "store/copying.hpp"

namespace gridctl::cmd {

inline constexpr std::initializer_list<int> k_exits_remote = {3, 5, 6, 7, 8};

// Returns the remote that is named, or all; not_found if there are none.
[[nodiscard]] Result<std::vector<registry::Remote>> chosen_remotes(registry::CopyRecords& registry, const Parsed& parsed);

// Draws a line on a terminal that shows the progress and is overwritten each time; prints nothing elsewhere. The line
// starts with `what`.
class ProgressLine {
 public:
  ProgressLine(Context& context, std::string what) : context_(context), what_(std::move(what)) {}
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  [[nodiscard]] store::CopyProgress teller();

 private:
  Context& context_;
  std::string what_;
  BootTime next_{};
  bool shown_ = false;
};

}  // namespace gridctl::cmd
