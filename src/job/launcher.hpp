// SPDX-License-Identifier: Apache-2.0
// Builds the environment that a launcher sets for each rank. Only for the launcher that the job asks for: a job started
// by plain `run` sees no launcher, because frameworks take RANK or SLURM_PROCID as the sign of a distributed run
// (Lightning, Accelerate, Transformers, DeepSpeed and submitit all look for them). How ranks are started: rank_start.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::job {

enum class Launcher : std::uint8_t { plain, torchrun, mpi, ray, deepspeed, jax, tensorflow, accelerate, slurm_env };

[[nodiscard]] std::string_view launcher_name(Launcher launcher);       // "slurm-env"
[[nodiscard]] Result<Launcher> parse_launcher(std::string_view name);  // usage
[[nodiscard]] const std::vector<std::string>& launcher_names();        // in the order of the enum

struct RankHost {
  std::string address;  // a number, no name: a name may resolve to 127.0.1.1 on its own host
  int ranks = 1;
  bool operator==(const RankHost&) const = default;
};

// States where one rank is among all.
struct RankPlace {
  std::string run_id;  // the same for all ranks and attempts
  std::string job_name;
  int restarts = 0;                   // attempts before this one
  int node_rank = 0, local_rank = 0;  // from 0
  int gpus_per_node = 0;
  std::vector<RankHost> hosts;  // in the order of their ranks, never empty
  int port = 0;                 // of the rendezvous, on the first host; the gang has those behind it too

  [[nodiscard]] int num_nodes() const { return static_cast<int>(hosts.size()); }
  [[nodiscard]] int ranks_here() const { return hosts.at(static_cast<std::size_t>(node_rank)).ranks; }
  [[nodiscard]] int rank() const;
  [[nodiscard]] int world_size() const;
};

// Returns the variables of that launcher for this rank, and of no other launcher.
[[nodiscard]] std::map<std::string, std::string> launcher_environment(Launcher launcher, const RankPlace& place);

}  // namespace gridctl::job
