// SPDX-License-Identifier: Apache-2.0
// Shows where each process of a job is now, as text for people: what a hung rank waits for.
#pragma once

#include <string>

#include "agent/attempt_dir.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {

inline constexpr Duration k_stacks_wait = std::chrono::seconds{20};  // for all of them together

// Returns, by rank, the command, the kernel function in which it waits, its kernel stack if this user may see it, the
// Python stack if py-spy is installed (on this host; nothing is needed in a container), and the tail of NCCL's flight
// recorder if the job has one. At most wire::k_stacks_bytes_max. not_found if no process of the attempt runs.
[[nodiscard]] Result<std::string> stacks_of(const AttemptDir& attempt, const os::Clock& clock);

}  // namespace gridctl::agent
