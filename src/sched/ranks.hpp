// SPDX-License-Identifier: Apache-2.0
// How many processes of a job are started on a host. Pure.
#pragma once

#include <string>
#include <string_view>

#include "job/spec.hpp"

namespace gridctl::sched {

// Does this shell text call a program that starts ranks: torchrun, mpirun, srun, `accelerate launch`…? Then it is
// called once on each host, or once in all.
[[nodiscard]] bool starts_ranks_itself(std::string_view run);

// For people: a program in `run` of a job on several hosts starts processes on the others by ssh, which jobs do not have.
// Empty when there is none, and with the launchers that need no ssh.
[[nodiscard]] std::string ssh_doubt(const job::Spec& spec);

// On a host where the job has leased so many GPUs: what the job file says, else what its launcher usually does.
[[nodiscard]] int ranks_on_host(const job::Spec& spec, int gpus);

}  // namespace gridctl::sched
