// SPDX-License-Identifier: Apache-2.0
// The programs that start the ranks of a job on its hosts. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "job/launcher.hpp"

namespace gridctl::job {

enum class RankStarter : std::uint8_t {
  each_host,  // gridctl starts every rank on its own host
  mpirun,     // mpirun on the first host; our agent carries its calls to the others
  ray,        // the program runs once, on the first host; the others serve its cluster
};
[[nodiscard]] RankStarter starter_of(Launcher launcher);

inline constexpr int k_ranks_per_host_max = 256;  // as many as an inventory may list GPUs
// How many ranks there are on a host with so many leased GPUs when the job does not say: one for each GPU where the
// launcher's programs want that, else one.
[[nodiscard]] int usual_ranks(Launcher launcher, int gpus);
// Each rank sees its own GPU alone: JAX and TensorFlow take all that they see. Ranks of other launchers see all of
// their host: torch chooses by LOCAL_RANK, and fails when there is one device only.
[[nodiscard]] bool binds_gpus(Launcher launcher);

// The programs that a host runs where its ranks are not started one by one.
struct StarterPaths {
  std::string agent;        // our own binary, as the job sees it
  std::string program;      // a script with the job's own command
  std::string hostfile;     // as hostfile() writes it
  std::string machinefile;  // as machinefile() does
};
// A shell text. REQUIRES: starter_of(launcher) is not each_host. `self_starting`: the job's own command calls mpirun.
[[nodiscard]] std::string starter_script(Launcher launcher, const RankPlace& place, const StarterPaths& paths,
                                         bool self_starting);
// Returns the script of the job's own command on each host of several, whose workers in the background outlive it.
[[nodiscard]] std::string node_script(const StarterPaths& paths);
// "10.0.0.7 slots=8" for each host, as OpenMPI and DeepSpeed read it; "10.0.0.7:8", as MPICH and Intel MPI do.
[[nodiscard]] std::string hostfile(const std::vector<RankHost>& hosts);
[[nodiscard]] std::string machinefile(const std::vector<RankHost>& hosts);

// A gang has a range of ports of its own in each epoch, so that a rank of an old epoch that wakes up late finds nobody.
// Else it joins whoever listens on its port, and the new rank waits outside: seen with torch. The range lies below
// Linux's ephemeral ports, which outgoing connections take at random.
inline constexpr int k_gang_ports = 32, k_gang_port_min = 20'000, k_gang_port_max = 32'767;
inline constexpr int k_companion_port = 1;  // behind the rendezvous: where a host takes calls from the first host.
                                            // With a node_script it is the last of the range, on the first host.
// The first of the range, where the rendezvous is. `skip` counts ranges that were found in use.
[[nodiscard]] int gang_port(const JobId& job, Epoch epoch, int skip = 0);

}  // namespace gridctl::job
