// SPDX-License-Identifier: Apache-2.0
// Builds the programs that start the ranks of a job on its hosts. Pure.
#pragma once

#include <cstdint>
#include <string>
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
// Returns the number of ranks on a host with this many leased GPUs if the job does not say: one for each GPU if the
// launcher's programs want that, otherwise one.
[[nodiscard]] int usual_ranks(Launcher launcher, int gpus);
// Returns true if each rank sees only its own GPU: JAX and TensorFlow take all visible ones. Ranks of other launchers
// see all of their host: torch chooses by LOCAL_RANK, and fails if there is only one device.
[[nodiscard]] bool binds_gpus(Launcher launcher);

// Holds the programs that a host runs if its ranks are not started one by one.
struct StarterPaths {
  std::string agent;        // our own binary, as the job sees it
  std::string program;      // a script with the job's own command
  std::string hostfile;     // as hostfile() writes it
  std::string machinefile;  // as machinefile() does
};
// Returns a shell text. REQUIRES: starter_of(launcher) is not each_host. `self_starting`: the job's own command calls
// mpirun.
[[nodiscard]] std::string starter_script(Launcher launcher, const RankPlace& place, const StarterPaths& paths,
                                         bool self_starting);
// Returns the script of the job's own command on each of several hosts, whose background workers outlive it.
[[nodiscard]] std::string node_script(const StarterPaths& paths);
// Returns "10.0.0.7 slots=8" for each host, in the format of OpenMPI and DeepSpeed; or "10.0.0.7:8", in that of MPICH
// and Intel MPI.
[[nodiscard]] std::string hostfile(const std::vector<RankHost>& hosts);
[[nodiscard]] std::string machinefile(const std::vector<RankHost>& hosts);

// A gang has its own range of ports in each epoch, so that a rank of an old epoch that wakes up late finds no peer.
// Otherwise it joins whichever process listens on its port, and the new rank waits outside: seen with torch. The range
// is below Linux's ephemeral ports, which outgoing connections take at random.
inline constexpr int k_gang_ports = 32, k_gang_port_min = 20'000, k_gang_port_max = 32'767;
inline constexpr int k_companion_port = 1;  // behind the rendezvous: where a host takes calls from the first host.
                                            // With a node_script, the companion port is the last of the range, on the
                                            // first host. Returns the first of the range, for the rendezvous. `skip`
                                            // counts ranges that were in use.
[[nodiscard]] int gang_port(const JobId& job, Epoch epoch, int skip = 0);

}  // namespace gridctl::job
