// SPDX-License-Identifier: Apache-2.0
// Where each process of a job stands just now, as text for people: what a rank that hangs waits for.
#pragma once

#include <string>

#include "agent/attempt_dir.hpp"
#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"

namespace gridctl::agent {

inline constexpr Duration k_stacks_wait = std::chrono::seconds{20};  // for all of them together

// By rank: the command, what the kernel waits in, its kernel stack where this user may see it, the Python stack where
// py-spy is installed (on this host, nothing is needed in a container), and the tail of NCCL's flight recorder where
// the job has one. At most wire::k_stacks_bytes_max. not_found when nothing of the attempt runs.
[[nodiscard]] Result<std::string> stacks_of(const AttemptDir& attempt, const os::Clock& clock);

}  // namespace gridctl::agent
