// SPDX-License-Identifier: Apache-2.0
// Reads the rest of an attempt's output from its host, over a connection that nothing else uses.
#pragma once

#include <cstdint>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "control/reach/job_folders.hpp"
#include "os/clock.hpp"
#include "wire/frame.hpp"

namespace gridctl::control {

inline constexpr std::uint64_t k_metrics_bytes_max = 64u << 20;  // of one attempt

struct OutputOf {
  JobId job;
  Epoch epoch;
  AttemptNumber attempt;
  int rank = 0;  // or k_metrics_rank
};

// Fetches what `log` lacks up to offset `end`, as reported by the host. protocol_violation if the answers do not
// approach the end, or exceed what any host keeps.
[[nodiscard]] Result<void> read_output(wire::Link& link, os::Clock& clock, JobFolders& folders, const OutputOf& what,
                                       std::uint64_t end);

}  // namespace gridctl::control
