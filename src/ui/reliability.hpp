// SPDX-License-Identifier: Apache-2.0
// How reliable a host is, from the figures that the daemon keeps of it.
#pragma once

#include <string>

#include "registry/records.hpp"
#include "sched/standing/reliability.hpp"

namespace gridctl::ui {

// Returns the reliability by the figures; without them, that of the host's class (hours = 0).
[[nodiscard]] sched::Reliability reliability(const registry::Provider& provider);
// "4d (1d-21d)": expected time to the next failure with its 90 % band; "4d?" for a host that was never watched.
[[nodiscard]] std::string mtbf(const registry::Provider& provider);
// "up 99.2 % of the time, 3 failures in 12d, starts a job within 8s" for `provider show`; empty when never watched.
[[nodiscard]] std::string record(const registry::Provider& provider);
// "12 % slower than usual", "none"; empty when it was never measured.
[[nodiscard]] std::string bench_drift(const registry::Provider& provider);

// "ok", "degraded", "suspect" or "mismatch" by the last benchmark; empty when there was none.
[[nodiscard]] std::string bench_verdict(const registry::Provider& provider);

}  // namespace gridctl::ui
