// SPDX-License-Identifier: Apache-2.0
// Prints the plans of `plan train`: a table, the frontier of time and cost, JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "cmd/plan_islands.hpp"
#include "cmd/plan_question.hpp"
#include "plan/search.hpp"

namespace gridctl::cmd {

struct PlanReport {
  plan::Question question;
  Machines machines;
  plan::Answer answer;
  std::optional<std::string> rule;   // when no parallelism runs it: what else there is
  std::vector<std::string> what_if;  // lines
  std::optional<TogetherAtSite> together;
  bool explain = false;
};
[[nodiscard]] std::string plan_text(const Context& context, const PlanReport& report);
[[nodiscard]] std::string plan_json(const PlanReport& report);
// Plots the frontier with characters; the axes are logarithmic.
[[nodiscard]] std::string frontier_plot(const std::vector<plan::Plan>& frontier, std::size_t columns);

}  // namespace gridctl::cmd
