// SPDX-License-Identifier: Apache-2.0
#include "sched/ranks.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
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
    return std::ranges::find(command.arguments, word) != command.arguments.end();
  };
  if (is_one_of(command.program, {"accelerate.commands.launch"})) return true;
  if (is_one_of(command.program, {"accelerate"})) return has("launch");
  return is_one_of(command.program, {"ray", "ray.scripts.scripts"}) && has("start");
}

// Lists programs that reach other hosts by ssh, the options that name those hosts, and the launcher that does without.
struct RemoteStarter {
  std::vector<std::string_view> programs, options;
  const char* launcher;
};
const std::array<RemoteStarter, 3> k_remote_starters{
    {{{"mpirun", "mpiexec", "mpiexec.hydra", "mpirun.openmpi", "mpirun.mpich", "orterun", "prterun"},
      {"-H", "-host", "--host", "-hosts", "-hostfile", "--hostfile", "-machinefile", "--machinefile", "-f"},
      "mpi"},
     {{"deepspeed"}, {"-H", "--hostfile", "--num_nodes"}, "deepspeed"},
     {{"horovodrun"}, {"-H", "--hosts", "-hostfile", "--hostfile"}, "mpi"}}};

bool names_hosts(const ShellCommand& command, const RemoteStarter& starter) {
  return std::ranges::any_of(command.arguments, [&](const std::string& argument) {
    const std::string_view option = std::string_view(argument).substr(0, argument.find('='));
    return std::ranges::find(starter.options, option) != starter.options.end();
  });
}
}  // namespace

std::string ssh_doubt(const job::Spec& spec) {
  if (spec.num_nodes <= 1 || spec.launcher != job::Launcher::plain) return "";
  for (const ShellCommand& command : shell_commands(spec.run))
    for (const RemoteStarter& starter : k_remote_starters)
      if (std::ranges::find(starter.programs, command.program) != starter.programs.end() &&
          names_hosts(command, starter))
        return "'" + command.program +
               "' in 'run' reaches the other hosts by ssh, which jobs cannot use; with 'launcher: " +
               starter.launcher + "' it needs none";
  return "";
}

bool starts_ranks_itself(std::string_view run) {
  const std::vector<ShellCommand> commands = shell_commands(run);
  return std::ranges::any_of(commands, &is_starter);
}

int ranks_on_host(const job::Spec& spec, int gpus) {
  return spec.gang.ranks_per_node > 0 ? spec.gang.ranks_per_node : job::usual_ranks(spec.launcher, gpus);
}

std::uint32_t ranks_of(const job::Spec& spec, const job::Member& member) {
  return static_cast<std::uint32_t>(ranks_on_host(spec, static_cast<int>(member.gpu_uuids.size())));
}

}  // namespace gridctl::sched
