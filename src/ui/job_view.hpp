// SPDX-License-Identifier: Apache-2.0
// Shows one job on a terminal: the block that `job watch` redraws, and the lines that it prints if it cannot redraw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "registry/records.hpp"
#include "registry/use.hpp"
#include "ui/style.hpp"

namespace gridctl::ui {

struct JobView {
  registry::Job job;
  std::vector<registry::AttemptRecord> attempts;  // oldest first
  std::optional<registry::Checkpoint> head;
  std::size_t checkpoints = 0;
  std::optional<registry::JobUse> use{};  // while it runs
};

// Returns the block: a few lines without newlines, each at most `columns` wide.
[[nodiscard]] std::vector<std::string> job_block(const JobView& view, WallTime now, std::size_t columns, Style style);
// Formats an event as "12:16:25  attempt 2 started on ada"; sanitised, one line.
[[nodiscard]] std::string event_line(const registry::EventRecord& event, WallTime now, Style style);
}  // namespace gridctl::ui
