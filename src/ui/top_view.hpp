// SPDX-License-Identifier: Apache-2.0
// Shows all hosts and unfinished jobs on one screen, for `gridctl top`. Pure.
#pragma once

#include <string>
#include <vector>

#include "registry/records.hpp"
#include "registry/use.hpp"
#include "ui/style.hpp"

namespace gridctl::ui {

struct TopHost {
  registry::Provider provider;
  std::string state;  // "drained", or how it answers
};

struct TopView {
  std::vector<TopHost> hosts;
  std::vector<registry::JobRow> jobs;  // that have not ended
  registry::UseNow use;
};

// Returns lines without newlines, each at most `columns` wide (0: not cut), and at most `rows` of them; the rest is
// counted; 0: all.
[[nodiscard]] std::vector<std::string> top_screen(const TopView& view, WallTime now, std::size_t columns, std::size_t rows,
                                                  Style style, const std::string& keys);
// {"at","providers":[…],"jobs":[…]}
[[nodiscard]] std::string top_json(const TopView& view, WallTime now);

}  // namespace gridctl::ui
