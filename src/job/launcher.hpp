// SPDX-License-Identifier: Apache-2.0
// How the ranks of a distributed program learn of each other, and the environment that says so. Pure.
//
// A job of one process with `launcher: plain` sees nothing of any launcher: frameworks take RANK or SLURM_PROCID for
// the sign of a distributed run (Lightning, Accelerate, Transformers, DeepSpeed and submitit all look for them).
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

// Where one rank stands among all, on equal hosts.
struct RankPlace {
  std::string run_id;  // the same for all ranks and attempts
  std::string job_name;
  int restarts = 0;                   // attempts before this one
  int node_rank = 0, local_rank = 0;  // from 0
  int ranks_per_node = 1;
  int gpus_per_node = 0;
  std::vector<std::string> addresses;  // of the hosts in the order of their ranks, never empty; numbers, no names
  int port = 0;                        // of the rendezvous, on the first host

  [[nodiscard]] int num_nodes() const { return static_cast<int>(addresses.size()); }
  [[nodiscard]] int rank() const { return node_rank * ranks_per_node + local_rank; }
  [[nodiscard]] int world_size() const { return num_nodes() * ranks_per_node; }
};

// What that launcher sets for this rank, and nothing of any other's.
[[nodiscard]] std::map<std::string, std::string> launcher_environment(Launcher launcher, const RankPlace& place);

}  // namespace gridctl::job
