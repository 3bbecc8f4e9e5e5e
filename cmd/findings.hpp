// SPDX-License-Identifier: Apache-2.0
// Shows findings of the preflight to people with the command that fixes them.
#pragma once

#include <string>
#include <vector>

#include "cmd/context.hpp"
#include "control/fleet/health.hpp"
#include "control/measure/bench.hpp"
#include "probe/preflight.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// Judges again from the inventory of the last check.
[[nodiscard]] std::vector<probe::Finding> findings_of(const registry::Provider& provider);
// Returns "  ok    disk: 12 GiB free", with the fix on a separate line.
[[nodiscard]] std::string finding_text(ui::Style style, const probe::Finding& finding);
// Prints every finding, one line each, to stderr; fixes beneath.
void show_findings(Context& context, const std::vector<probe::Finding>& findings);
// Prints only findings that are not ok.
void show_problems(Context& context, const std::vector<probe::Finding>& findings);
// Returns the findings of a look at the host's health.
[[nodiscard]] std::vector<probe::Finding> health_findings(const Result<control::CheckedHealth>& health,
                                                          const HostName& name);
// Returns the faults that a benchmark found, and the figures that it could not measure.
[[nodiscard]] std::vector<probe::Finding> bench_findings(const control::BenchReport& report);
// Prints measurements over time to stdout: standing and health, benchmark, links. Prints nothing without any.
[[nodiscard]] Result<void> show_measured(Context& context, registry::HostRecords& registry, const HostName& name);
// Returns a JSON array of {"point","ok","required","detail","fix"}.
[[nodiscard]] std::string findings_json(const std::vector<probe::Finding>& findings);

}  // namespace gridctl::cmd
