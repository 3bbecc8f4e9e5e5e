// SPDX-License-Identifier: Apache-2.0
#include "job/rank_start.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/text.hpp"

namespace gridctl::job {

namespace {
std::uint64_t fnv(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// The first host's command tells the other hosts when it has ended: then they end too.
std::string and_tell_the_others(const StarterPaths& paths) {
  return "code=$?\n" + shell_quote(paths.agent) + " gang-end \"$code\"\nexit \"$code\"\n";
}

// Hydra accepts only an executable without arguments, such as a link to the agent with this name.
constexpr const char* k_call_link = "gang-run";

// Exists on every host, in PATH: OpenMPI's daemons look for it too, and the folder differs on each host.
std::string call_link(const StarterPaths& paths) {
  return "folder=$(dirname " + shell_quote(paths.program) + ")\nln -sf " + shell_quote(paths.agent) + " \"$folder/" +
         k_call_link + "\"\nexport PATH=\"$folder:$PATH\"\n";
}

std::string mpi_exports(const StarterPaths& paths) {
  const std::string call = "\"$folder/" + std::string(k_call_link) + "\"";
  const std::string hosts = shell_quote(paths.hostfile), machines = shell_quote(paths.machinefile);
  std::string text = call_link(paths);
  // OpenMPI: a daemonized orted would end its container; without keepalive, a lost host is noticed after eight minutes.
  text += "export OMPI_MCA_plm_rsh_agent=" + std::string(k_call_link) + " OMPI_MCA_plm_rsh_no_tree_spawn=1\n";
  text += "export OMPI_MCA_orte_default_hostfile=" + hosts + " OMPI_MCA_orte_leave_session_attached=1\n";
  text += "export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2\n";
  text += "export OMPI_MCA_oob_tcp_keepalive_probes=3\n";
  text += "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n";
  text += "export PRTE_MCA_plm_ssh_agent=" + std::string(k_call_link) + " PRTE_MCA_prte_default_hostfile=" + hosts + "\n";
  // The variables are for MPICH, and for Intel MPI, which is based on it.
  text += "export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=" + call + " HYDRA_HOST_FILE=" + machines + "\n";
  text += "export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC=" + call;
  return text + " I_MPI_HYDRA_HOST_FILE=" + machines + "\n";
}

std::string mpi_script(const RankPlace& place, const StarterPaths& paths, bool self_starting) {
  if (place.node_rank > 0) return call_link(paths) + "exec " + shell_quote(paths.agent) + " gang-serve\n";
  std::string text = mpi_exports(paths);
  if (!self_starting) {
    text += "command -v mpirun >/dev/null || { echo 'gridctl: launcher: mpi needs mpirun in the image' >&2; ";
    text += shell_quote(paths.agent) + " gang-end 127; exit 127; }\n";
    text += "mpirun -np " + std::to_string(place.world_size()) + " ";
  }
  text += "\"${BASH:-/bin/sh}\" " + shell_quote(paths.program) + "\n";
  return text + and_tell_the_others(paths);
}

std::string ray_ports(int first) {
  return " --node-manager-port " + std::to_string(first + 2) + " --object-manager-port " + std::to_string(first + 3) +
         " --runtime-env-agent-port " + std::to_string(first + 4);
}

// `python3 -m ray…` works if the package has put no script into PATH. PATH is searched, not this function.
constexpr const char* k_ray = "ray() { if (unset -f ray; command -v ray) >/dev/null; then command ray \"$@\"; "
                              "else python3 -m ray.scripts.scripts \"$@\"; fi; }\n";

std::string ray_script(const RankPlace& place, const StarterPaths& paths) {
  const std::string head = place.hosts.front().address, here = place.hosts.at(static_cast<std::size_t>(place.node_rank)).address;
  const std::string cluster = head + ":" + std::to_string(place.port);
  const std::string common = " --node-ip-address " + here + ray_ports(place.port) + " --num-gpus " +
                             std::to_string(place.gpus_per_node) + " --disable-usage-stats --block";
  std::string text = k_ray;
  if (place.node_rank > 0) {
    text += "until ray health-check --address " + cluster + " >/dev/null 2>&1; do sleep 1; done\n";
    return text + "ray start --address " + cluster + common + " &\nexec " + shell_quote(paths.agent) + " gang-serve\n";
  }
  text += "ray start --head --port " + std::to_string(place.port) + " --include-dashboard false" + common + " &\n";
  text += "for i in $(seq 120); do ray health-check --address " + cluster + " >/dev/null 2>&1 && break; sleep 0.5; done\n";
  return text + "\"${BASH:-/bin/sh}\" " + shell_quote(paths.program) + "\n" + and_tell_the_others(paths);
}
}  // namespace

RankStarter starter_of(Launcher launcher) {
  if (launcher == Launcher::mpi) return RankStarter::mpirun;
  return launcher == Launcher::ray ? RankStarter::ray : RankStarter::each_host;
}

int usual_ranks(Launcher launcher, int gpus) {
  switch (launcher) {
    case Launcher::torchrun:
    case Launcher::deepspeed:
    case Launcher::accelerate:
    case Launcher::slurm_env:
    case Launcher::mpi: return std::clamp(gpus, 1, k_ranks_per_host_max);
    case Launcher::plain:
    case Launcher::ray:
    case Launcher::jax:         // one process drives all GPUs of its host
    case Launcher::tensorflow:  // likewise
      return 1;
  }
  return 1;
}

bool binds_gpus(Launcher launcher) { return launcher == Launcher::jax || launcher == Launcher::tensorflow; }

std::string starter_script(Launcher launcher, const RankPlace& place, const StarterPaths& paths, bool self_starting) {
  GRIDCTL_CHECK(starter_of(launcher) != RankStarter::each_host);
  return launcher == Launcher::mpi ? mpi_script(place, paths, self_starting) : ray_script(place, paths);
}

std::string node_script(const StarterPaths& paths) {
  return "exec " + shell_quote(paths.agent) + " gang-node \"${BASH:-/bin/sh}\" " + shell_quote(paths.program) + "\n";
}

std::string hostfile(const std::vector<RankHost>& hosts) {
  std::string text;
  for (const RankHost& host : hosts) text += host.address + " slots=" + std::to_string(host.ranks) + "\n";
  return text;
}

std::string machinefile(const std::vector<RankHost>& hosts) {
  std::string text;
  for (const RankHost& host : hosts) text += host.address + ":" + std::to_string(host.ranks) + "\n";
  return text;
}

int gang_port(const JobId& job, Epoch epoch, int skip) {
  constexpr std::uint64_t ranges = (k_gang_port_max + 1 - k_gang_port_min) / k_gang_ports;
  constexpr std::uint64_t stride = 61;  // shares no factor with 399: all ranges have their turn before one comes again
  static_assert(ranges == 399);
  const std::uint64_t range = (fnv(job.value) % ranges + epoch.value % ranges * stride +
                               static_cast<std::uint64_t>(std::max(skip, 0)) * 7) % ranges;
  return k_gang_port_min + static_cast<int>(range) * k_gang_ports;
}

}  // namespace gridctl::job
