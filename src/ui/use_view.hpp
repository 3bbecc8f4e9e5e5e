// SPDX-License-Identifier: Apache-2.0
// Formats the use of hosts and GPUs by running jobs for people and programs. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "registry/use.hpp"
#include "ui/table.hpp"

namespace gridctl::ui {

// Returns "▁▃█": a character for each percentage, at most `width` of them, the newest last.
[[nodiscard]] std::string sparkline(std::span<const int> percents, std::size_t width);
// Returns "97 %", or "-" if it was not reported.
[[nodiscard]] std::string percent_text(std::optional<int> percent);
// Returns "61.2 of 80 GiB", of all GPUs together; empty if none was reported.
[[nodiscard]] std::string gpu_memory_text(const Use& use);
// Returns the hottest: "64 °C", empty if none was reported.
[[nodiscard]] std::string heat_text(const Use& use);
// Returns "GPU 97 %  61.2 of 80 GiB  64 °C  CPU 3.5 of 8  memory 6.0 GiB".
[[nodiscard]] std::string use_text(const registry::MemberUse& member);
// Returns a line for each member, at most `most` of them: "rank 1  ada  GPU 97 %  …  ▁▃█".
[[nodiscard]] std::vector<std::string> use_lines(const registry::JobUse& job, std::size_t columns, std::size_t most);
// Returns a table with RANK, PROVIDER, GPU, GPU MEMORY, HEAT, CPU, MEMORY, LAST MINUTES.
[[nodiscard]] Table use_table(const registry::JobUse& job);
// Returns {"measured_at","cpus","memory_bytes","gpus":[{"uuid","busy_percent","memory_bytes","memory_total_bytes",
// "temperature_c"}],"history_percent":[…]}. `uuids`: of the member's GPUs.
[[nodiscard]] std::string use_json(const registry::MemberUse& member, std::span<const std::string> uuids);

}  // namespace gridctl::ui
