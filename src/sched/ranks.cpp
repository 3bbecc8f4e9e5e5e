// SPDX-License-Identifier: Apache-2.0
#include "sched/ranks.hpp"

#include <algorithm>

#include "job/rank_start.hpp"
#include "sched/shell_words.hpp"

namespace gridctl::sched {

namespace {
bool is_starter(const ShellCommand& command) {
  for (const char* program :
       {"torchrun", "torch.distributed.run", "torch.distributed.launch", "deepspeed", "mpirun", "mpiexec",
        "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich", "orterun", "prterun", "srun", "horovodrun", "composer"})
    if (command.program == program) return true;
  const auto has = [&](const char* word) {
    return std::find(command.arguments.begin(), command.arguments.end(), word) != command.arguments.end();
  };
  if (command.program == "accelerate" || command.program == "accelerate.commands.launch")
    return command.program != "accelerate" || has("launch");
  return (command.program == "ray" || command.program == "ray.scripts.scripts") && has("start");
}
}  // namespace

bool starts_ranks_itself(std::string_view run) {
  const std::vector<ShellCommand> commands = shell_commands(run);
  return std::any_of(commands.begin(), commands.end(), &is_starter);
}

int ranks_on_host(const job::Spec& spec, int gpus) {
  return spec.gang.ranks_per_node > 0 ? spec.gang.ranks_per_node : job::usual_ranks(spec.launcher, gpus);
}

}  // namespace gridctl::sched
