// SPDX-License-Identifier: Apache-2.0
// How many processes of a job are started on a host. Pure.
#pragma once

#include <string_view>

#include "job/spec.hpp"

namespace gridctl::sched {

// Does this shell text call a program that starts ranks: torchrun, mpirun, srun, `accelerate launch`…? Then it is
// called once on each host, or once in all.
[[nodiscard]] bool starts_ranks_itself(std::string_view run);

// On a host where the job has leased so many GPUs: what the job file says, else what its launcher usually does.
[[nodiscard]] int ranks_on_host(const job::Spec& spec, int gpus);

}  // namespace gridctl::sched
