// SPDX-License-Identifier: Apache-2.0
// Describes how reliable a host is, from the figures that the daemon keeps about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "registry/records.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::ui {

[[nodiscard]] std::optional<double> figure(const registry::Provider& provider, std::string_view name);
// Returns the reliability according to the figures; without them, that of the host's class (hours = 0).
[[nodiscard]] sched::Reliability reliability(const registry::Provider& provider);
// Returns "4d (1d-21d)": expected time to the next failure with its 90 % band; "4d?" for a host that was never watched.
[[nodiscard]] std::string mtbf(const registry::Provider& provider);
// Returns "up 99.2 % of the time, 3 failures in 12d, starts a job within 8s" for `provider show`; empty if never
// watched.
[[nodiscard]] std::string record(const registry::Provider& provider);
// Returns "12 % slower than usual" or "none"; empty if it was never measured.
[[nodiscard]] std::string bench_drift(const registry::Provider& provider);

// Returns "ok", "degraded", "suspect" or "mismatch" according to the last benchmark; empty if there was none.
[[nodiscard]] std::string bench_verdict(const registry::Provider& provider);

}  // namespace gridctl::ui
