// SPDX-License-Identifier: Apache-2.0
// Decides how many processes of a job are started on a host. Pure.
#pragma once

#include <string>
#include <string_view>

#include "job/spec.hpp"
#include "job/state.hpp"

namespace gridctl::sched {

// Returns whether this shell text calls a program that starts ranks: torchrun, mpirun, srun, `accelerate launch`… Such
// a program is called once on each host, or once in all.
[[nodiscard]] bool starts_ranks_itself(std::string_view run);

// Returns a text for people if a program in `run` of a multi-host job starts processes on the others by ssh, which jobs
// cannot use. Empty if there is none, and with launchers that need no ssh.
[[nodiscard]] std::string ssh_doubt(const job::Spec& spec);

// Returns the ranks on a host where the job has leased this many GPUs: what the job file says, otherwise the launcher's
// usual number.
[[nodiscard]] int ranks_on_host(const job::Spec& spec, int gpus);
[[nodiscard]] std::uint32_t ranks_of(const job::Spec& spec, const job::Member& member);

}  // namespace gridctl::sched
