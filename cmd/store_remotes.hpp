// SPDX-License-Identifier: Apache-2.0
// Functions that the commands of `store` share.
#pragma once

#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "registry/registry.hpp"
#include "store/copying.hpp"

namespace gridctl::cmd {

inline constexpr int k_exits_remote[] = {3, 5, 6, 7, 8};

// The one that is named, or all; not_found when there is none at all.
[[nodiscard]] Result<std::vector<registry::Remote>> chosen_remotes(registry::Registry& registry, const Parsed& parsed);

// A line on a terminal that says how far it is, written over; nothing elsewhere. `what` leads it.
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
