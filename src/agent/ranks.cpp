// SPDX-License-Identifier: Apache-2.0
#include "agent/ranks.hpp"

#include "base/text.hpp"
#include "os/address.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint16_t k_port_min = 1024;  // members listen where ordinary users may

Error refuse_gang(const std::string& why) { return make_error(Code::refused, "the attempt's gang is refused: " + why); }

job::Launcher launcher_of(const wire::Gang& gang) {
  return job::parse_launcher(gang.launcher).value_or(job::Launcher::plain);
}

job::RankPlace place_of(const wire::AttemptSpec& spec, std::size_t gpus, int local_rank) {
  const wire::Gang& gang = *spec.gang;
  job::RankPlace place;
  place.run_id = spec.job.value;
  place.job_name = spec.job_name;
  place.restarts = static_cast<int>(gang.restarts);
  place.node_rank = static_cast<int>(gang.node_rank);
  place.local_rank = local_rank;
  place.gpus_per_node = static_cast<int>(gpus);
  place.port = gang.port;
  for (const wire::GangMember& member : gang.members)
    place.hosts.push_back({member.address, static_cast<int>(member.ranks)});
  return place;
}

// Returns false if init does not start the ranks as processes: then one process has the output of the host.
bool starts_one_by_one(const wire::Gang& gang) {
  return job::starter_of(launcher_of(gang)) == job::RankStarter::each_host;
}
bool has_starter(const wire::Gang& gang) {
  if (starts_one_by_one(gang)) return false;
  // Ray on one host starts its cluster itself; a single MPI rank needs no launcher.
  return launcher_of(gang) == job::Launcher::ray ? gang.members.size() > 1 : gang.world_size() > 1;
}
std::uint32_t processes_of(const wire::Gang& gang) {
  return gang.self_starting || !starts_one_by_one(gang) ? 1 : gang.here().ranks;
}

// Returns true for the job's own command, run once on each host: a worker that it leaves in the background may serve
// the first host's.
bool is_node_command(const wire::Gang& gang) {
  return launcher_of(gang) == job::Launcher::plain && gang.members.size() > 1 && processes_of(gang) == 1;
}

std::string label_of(const wire::Gang& gang, std::uint32_t local) {
  if (gang.world_size() == 1) return "";  // nobody else's lines are beside its own
  const bool whole_host = gang.self_starting || has_starter(gang);
  return whole_host ? "node " + std::to_string(gang.node_rank) : "rank " + std::to_string(gang.first_rank() + local);
}

// Returns a contiguous share: with as many ranks as GPUs, one each.
std::vector<std::size_t> share_of(std::size_t gpus, std::size_t ranks, std::size_t local) {
  std::vector<std::size_t> positions;
  for (std::size_t i = local * gpus / ranks; i < (local + 1) * gpus / ranks; ++i) positions.push_back(i);
  return positions;
}

// In a container, the devices of AMD and Intel are numbered from 0; NVIDIA's ids are the same there.
Variables gpu_share(EngineKind engine, const std::vector<Gpu>& gpus, std::size_t ranks, std::size_t local) {
  std::vector<Gpu> mine;
  for (const std::size_t at : share_of(gpus.size(), ranks, local)) {
    mine.push_back(gpus[at]);
    if (engine != EngineKind::process) mine.back().index = static_cast<int>(at);
  }
  Variables variables;
  for (auto& [name, value] : gpu_variables(mine)) variables[name] = value;
  return variables;
}

void add_network(Variables& into, const std::string& interface) {
  if (interface.empty()) return;
  into["GLOO_SOCKET_IFNAME"] = into["TP_SOCKET_IFNAME"] = interface;
  into["NCCL_SOCKET_IFNAME"] = "=" + interface;  // '=': this one, not all that begin so
  for (const char* name : {"OMPI_MCA_btl_tcp_if_include", "OMPI_MCA_oob_tcp_if_include"}) into[name] = interface;
  into["HYDRA_IFACE"] = interface;
}

std::string joined_addresses(const wire::Gang& gang) {
  std::vector<std::string> addresses;
  for (const wire::GangMember& member : gang.members) addresses.push_back(member.address);
  return join(addresses, "\n");
}

std::string nul_separated(const Variables& variables) {
  std::string text;
  for (const auto& [name, value] : variables) text += name + "=" + value + std::string(1, '\0');
  return text;
}
}  // namespace

Result<void> check_gang(const wire::AttemptSpec& spec) {
  if (!spec.gang) return {};
  const wire::Gang& gang = *spec.gang;
  if (!job::parse_launcher(gang.launcher)) return refuse_gang("this agent knows no such launcher");
  if (gang.port < k_port_min || gang.ports == 0) return refuse_gang("it has no ports");
  for (const wire::GangMember& member : gang.members) {
    if (os::address_kind(member.address) == os::AddressKind::none) return refuse_gang("a member has no numeric address");
    TRY(check_component("the member's name", member.name));
  }
  return {};
}

bool needs_host_network(const wire::AttemptSpec& spec) { return spec.gang && spec.gang->members.size() > 1; }

std::string host_name_in(const wire::Gang& gang) { return "node" + std::to_string(gang.node_rank); }

std::string host_names(const wire::Gang& gang) {
  std::string text = "127.0.0.1 localhost\n::1 localhost\n";
  for (std::size_t i = 0; i < gang.members.size(); ++i)
    text += gang.members[i].address + " node" + std::to_string(i) + " " + gang.members[i].name + "\n";
  return text;
}

Variables gang_variables(const wire::AttemptSpec& spec, const JobView& view, const std::string& interface) {
  const wire::Gang& gang = *spec.gang;
  Variables variables;
  variables["GRIDCTL_NODE_RANK"] = variables["SKYPILOT_NODE_RANK"] = std::to_string(gang.node_rank);
  variables["GRIDCTL_NUM_NODES"] = variables["SKYPILOT_NUM_NODES"] = std::to_string(gang.members.size());
  variables["GRIDCTL_NODE_IPS"] = variables["SKYPILOT_NODE_IPS"] = joined_addresses(gang);
  variables["GRIDCTL_MASTER_ADDR"] = gang.members.front().address;
  variables["GRIDCTL_MASTER_PORT"] = std::to_string(gang.port);
  variables["GRIDCTL_PORTS"] = std::to_string(gang.port) + "-" + std::to_string(gang.port + gang.ports - 1);
  variables["GRIDCTL_WORLD_SIZE"] = std::to_string(gang.world_size());
  variables["GRIDCTL_HOSTFILE"] = (view.run / "hostfile").string();
  variables["GRIDCTL_GANG_FILE"] = (view.run / k_gang_file).string();
  if (gang.members.size() > 1) add_network(variables, interface);
  const job::Launcher launcher = launcher_of(gang);
  if (launcher == job::Launcher::torchrun || launcher == job::Launcher::deepspeed ||
      launcher == job::Launcher::accelerate) {
    // NCCL's flight recorder shows what each rank had started when a collective hung. Files appear beside our own.
    variables["TORCH_FR_BUFFER_SIZE"] = "2000";
    variables["TORCH_NCCL_DUMP_ON_TIMEOUT"] = "1";
    variables["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"] = (view.run / "nccl_trace_rank_").string();
  }
  return variables;
}

Variables rank_variables(const wire::AttemptSpec& spec, const std::vector<Gpu>& gpus, int local_rank) {
  const wire::Gang& gang = *spec.gang;
  const job::Launcher launcher = launcher_of(gang);
  const job::RankPlace place = place_of(spec, gpus.size(), local_rank);
  Variables variables = job::launcher_environment(launcher, place);
  variables["GRIDCTL_RANK"] = std::to_string(place.rank());
  variables["GRIDCTL_LOCAL_RANK"] = std::to_string(local_rank);
  const auto ranks = static_cast<std::size_t>(place.ranks_here());
  if (ranks == 1 || gang.self_starting) return variables;
  if (job::binds_gpus(launcher))
    variables.merge(gpu_share(spec.engine, gpus, ranks, static_cast<std::size_t>(local_rank)));
  // This follows torchrun: otherwise, every rank would take all processors.
  variables["OMP_NUM_THREADS"] = "1";
  return variables;
}

Result<void> make_rank_files(const Path& run, const wire::AttemptSpec& spec, const JobView& view,
                             const std::vector<Gpu>& gpus, const std::string& agent) {
  if (!spec.gang) return {};
  const wire::Gang& gang = *spec.gang;
  const job::RankPlace place = place_of(spec, gpus.size(), 0);
  std::string labels;
  for (std::uint32_t local = 0; local < processes_of(gang); ++local) {
    labels += label_of(gang, local) + "\n";
    Variables variables = rank_variables(spec, gpus, static_cast<int>(local));
    for (const auto& [name, value] : spec.envs) variables.erase(name);  // the user's word is the last
    TRY(os::write_file_atomically(run / (k_rank_env + std::to_string(local)), nul_separated(variables)));
  }
  TRY(os::write_file_atomically(run / k_ranks_file, labels));
  TRY(os::write_file_atomically(run / "hosts", host_names(gang), 0644));
  TRY(os::write_file_atomically(run / "hostfile", job::hostfile(place.hosts), 0644));
  TRY(os::write_file_atomically(run / "machinefile", job::machinefile(place.hosts), 0644));
  const bool is_node = is_node_command(gang);
  if (!is_node && !has_starter(gang)) return {};
  const int port = gang.port + (is_node ? gang.ports - 1 : job::k_companion_port);
  std::string members = to_hex(gang.token) + "\n" + std::to_string(port) + "\n" + std::to_string(gang.node_rank) + "\n";
  for (const wire::GangMember& member : gang.members) members += member.address + "\n";
  TRY(os::write_file_atomically(run / k_gang_file, members));
  TRY(os::write_file_atomically(run / k_program_file, spec.run + "\n"));
  const job::StarterPaths paths{agent, (view.run / k_program_file).string(), (view.run / "hostfile").string(),
                                (view.run / "machinefile").string()};
  return os::write_file_atomically(
      run / "run.sh", is_node ? job::node_script(paths)
                              : job::starter_script(launcher_of(gang), place, paths, gang.self_starting));
}

}  // namespace gridctl::agent
