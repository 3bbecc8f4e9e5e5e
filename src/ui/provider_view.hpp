// SPDX-License-Identifier: Apache-2.0
// Shows everything about one provider on a terminal: its owner's statements, the findings, and the unknown facts with
// their reasons.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "registry/hosts.hpp"
#include "registry/records.hpp"
#include "sched/standing/reliability.hpp"
#include "sched/standing/standing.hpp"
#include "ui/style.hpp"

namespace gridctl::ui {

struct ProviderView {
  registry::Provider provider;
  std::vector<std::string> contradictions;   // what was declared and is otherwise
  std::vector<registry::HostEvent> history;  // oldest first
  std::vector<JobId> jobs;
  std::map<std::string, std::vector<std::string>> measured;  // by uuid: attributes of the GPU that a benchmark told
  std::map<std::string, sched::Reliability> gpus;            // of each GPU by its uuid
  std::string way_in_use;                                    // the address; empty: nobody has told
  std::optional<sched::HostStanding> standing;               // nullopt: its health was never looked at
};

// Returns complete lines. `columns` 0: nothing is cut, for pipes.
[[nodiscard]] std::string provider_view(const ProviderView& view, WallTime now, std::size_t columns, Style style);

// Formats "gen 4 x16", "gen 1 of 4, x8 of 16": the current and the maximum value.
[[nodiscard]] std::string pcie_text(const PcieLink& link);
// Formats "700 W", "500 W, made for 700 W".
[[nodiscard]] std::string power_text(const GpuPower& power);
// Returns "NV18", "xGMI", "PIX": the names of the vendors' tools.
[[nodiscard]] std::string link_text(const GpuLink& link);
// Groups gaps of one reason and detail: "needs_bench: units of every GPU (nvidia-smi does not tell)".
[[nodiscard]] std::vector<std::string> gap_lines(const Inventory& inventory);

}  // namespace gridctl::ui
