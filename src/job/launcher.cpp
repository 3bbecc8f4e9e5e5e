// SPDX-License-Identifier: Apache-2.0
#include "job/launcher.hpp"

#include "base/text.hpp"

namespace gridctl::job {

namespace {
using Environment = std::map<std::string, std::string>;

// Used by torch.distributed's env:// rendezvous, and everything built on it.
Environment torch_environment(const RankPlace& place) {
  Environment env;
  env["MASTER_ADDR"] = place.hosts.front().address;
  env["MASTER_PORT"] = std::to_string(place.port);
  env["RANK"] = env["ROLE_RANK"] = std::to_string(place.rank());
  env["WORLD_SIZE"] = env["ROLE_WORLD_SIZE"] = std::to_string(place.world_size());
  env["LOCAL_RANK"] = std::to_string(place.local_rank);
  env["LOCAL_WORLD_SIZE"] = std::to_string(place.ranks_here());
  env["NODE_RANK"] = env["GROUP_RANK"] = std::to_string(place.node_rank);
  env["GROUP_WORLD_SIZE"] = std::to_string(place.num_nodes());
  return env;
}

Environment torchrun_environment(const RankPlace& place) {
  Environment env = torch_environment(place);
  env["TORCHELASTIC_RUN_ID"] = place.run_id;
  env["TORCHELASTIC_RESTART_COUNT"] = std::to_string(place.restarts);
  env["TORCHELASTIC_MAX_RESTARTS"] = "0";  // a failed run begins anew from outside
  return env;
}

// Sets what mpirun sets for its ranks; with several ranks, mpirun itself does.
Environment mpi_environment(const RankPlace& place) {
  Environment env;
  if (place.world_size() > 1) return env;
  env["OMPI_COMM_WORLD_RANK"] = std::to_string(place.rank());
  env["OMPI_COMM_WORLD_SIZE"] = std::to_string(place.world_size());
  env["OMPI_COMM_WORLD_LOCAL_RANK"] = std::to_string(place.local_rank);
  env["OMPI_COMM_WORLD_LOCAL_SIZE"] = std::to_string(place.ranks_here());
  env["OMPI_COMM_WORLD_NODE_RANK"] = std::to_string(place.local_rank);  // among this program's ranks on the node
  return env;
}

std::vector<std::string> addresses_of(const std::vector<RankHost>& hosts) {
  std::vector<std::string> addresses;
  for (const RankHost& host : hosts) addresses.push_back(host.address);
  return addresses;
}

// "8(x2),4": Slurm's notation for the tasks of each node.
std::string tasks_per_node(const std::vector<RankHost>& hosts) {
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < hosts.size();) {
    std::size_t equal = 1;
    while (i + equal < hosts.size() && hosts[i + equal].ranks == hosts[i].ranks) ++equal;
    runs.push_back(std::to_string(hosts[i].ranks) + (equal > 1 ? "(x" + std::to_string(equal) + ")" : ""));
    i += equal;
  }
  return join(runs, ",");
}

Environment slurm_environment(const RankPlace& place) {
  Environment env;
  env["SLURM_JOB_ID"] = env["SLURM_JOBID"] = place.run_id;
  env["SLURM_JOB_NAME"] = place.job_name;
  env["SLURM_NNODES"] = env["SLURM_JOB_NUM_NODES"] = std::to_string(place.num_nodes());
  env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = std::to_string(place.world_size());
  env["SLURM_NTASKS_PER_NODE"] = std::to_string(place.ranks_here());
  env["SLURM_TASKS_PER_NODE"] = tasks_per_node(place.hosts);
  env["SLURM_NODEID"] = std::to_string(place.node_rank);
  env["SLURM_PROCID"] = std::to_string(place.rank());
  env["SLURM_LOCALID"] = std::to_string(place.local_rank);
  env["SLURM_NODELIST"] = env["SLURM_JOB_NODELIST"] = join(addresses_of(place.hosts), ",");
  env["SLURM_LAUNCH_NODE_IPADDR"] = place.hosts.front().address;
  env["SLURM_GPUS_PER_NODE"] = std::to_string(place.gpus_per_node);
  env["SLURM_RESTART_COUNT"] = std::to_string(place.restarts);
  return env;
}

// jax.distributed.initialize() takes the coordinator from here; the program passes the two numbers to it.
Environment jax_environment(const RankPlace& place) {
  return {{"JAX_COORDINATOR_ADDRESS", place.hosts.front().address + ":" + std::to_string(place.port)},
          {"JAX_NUM_PROCESSES", std::to_string(place.world_size())},
          {"JAX_PROCESS_ID", std::to_string(place.rank())}};
}

// Uses one port for each rank of a host, counted from the rendezvous port.
Environment tensorflow_environment(const RankPlace& place) {
  std::vector<std::string> workers;
  for (const RankHost& host : place.hosts)
    for (int local = 0; local < host.ranks; ++local)
      workers.push_back("\"" + host.address + ":" + std::to_string(place.port + local) + "\"");
  return {{"TF_CONFIG", R"({"cluster":{"worker":[)" + join(workers, ",") + R"(]},"task":{"type":"worker","index":)" +
                            std::to_string(place.rank()) + "}}"}};
}

// On one host, ray.init() starts the cluster itself; with several, the first one runs its head. With these times, Ray
// notices a lost host within ten seconds and retries its tasks; by default it takes minutes, or never happens.
Environment ray_environment(const RankPlace& place) {
  if (place.num_nodes() == 1) return {};
  return {{"RAY_health_check_period_ms", "1000"},
          {"RAY_health_check_timeout_ms", "2000"},
          {"RAY_health_check_failure_threshold", "3"},
          {"RAY_grpc_client_keepalive_time_ms", "5000"},
          {"RAY_grpc_client_keepalive_timeout_ms", "5000"},
          {"RAY_gcs_rpc_server_reconnect_timeout_s", "15"},
          {"RAY_ADDRESS", place.hosts.front().address + ":" + std::to_string(place.port)}};
}

struct LauncherRow {
  Launcher launcher;
  const char* name;
  Environment (*environment)(const RankPlace&);
};
constexpr LauncherRow k_rows[] = {
    {Launcher::plain, "plain", [](const RankPlace&) { return Environment{}; }},
    {Launcher::torchrun, "torchrun", &torchrun_environment},
    {Launcher::mpi, "mpi", &mpi_environment},
    {Launcher::ray, "ray", &ray_environment},
    {Launcher::deepspeed, "deepspeed", &torch_environment},
    {Launcher::jax, "jax", &jax_environment},
    {Launcher::tensorflow, "tensorflow", &tensorflow_environment},
    {Launcher::accelerate, "accelerate", &torch_environment},
    {Launcher::slurm_env, "slurm-env", &slurm_environment},
};
const LauncherRow& row_of(Launcher launcher) { return k_rows[static_cast<std::size_t>(launcher)]; }
}  // namespace

int RankPlace::rank() const {
  int before = 0;
  for (int node = 0; node < node_rank; ++node) before += hosts.at(static_cast<std::size_t>(node)).ranks;
  return before + local_rank;
}

int RankPlace::world_size() const {
  int all = 0;
  for (const RankHost& host : hosts) all += host.ranks;
  return all;
}

std::string_view launcher_name(Launcher launcher) { return row_of(launcher).name; }

const std::vector<std::string>& launcher_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const LauncherRow& row : k_rows) list.emplace_back(row.name);
    return list;
  }();
  return names;
}

Result<Launcher> parse_launcher(std::string_view name) {
  for (const LauncherRow& row : k_rows)
    if (name == row.name) return row.launcher;
  return make_error(Code::usage, "'" + std::string(name.substr(0, 40)) + "' is not a launcher; gridctl supports " +
                                     join(launcher_names(), ", "));
}

std::map<std::string, std::string> launcher_environment(Launcher launcher, const RankPlace& place) {
  return row_of(launcher).environment(place);
}

}  // namespace gridctl::job
