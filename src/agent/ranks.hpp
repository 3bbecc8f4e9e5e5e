// SPDX-License-Identifier: Apache-2.0
// Describes the part of a gang on this host: its ranks, their environment, and the files that start them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/engine.hpp"
#include "agent/init.hpp"
#include "agent/job_view.hpp"
#include "base/result.hpp"
#include "job/rank_start.hpp"
#include "wire/messages.hpp"

namespace gridctl::agent {

using Variables = std::map<std::string, std::string>;

// Lists file names in the run folder. init.hpp defines k_ranks_file and k_rank_env, which are init's.
inline constexpr const char* k_gang_file = "gang";           // where members take each other's calls; companion.hpp
inline constexpr const char* k_program_file = "program.sh";  // the job's own command where run.sh is another

// Checks the limits of a gang from a controller, which the host does not trust. `refused` otherwise.
[[nodiscard]] Result<void> check_gang(const wire::AttemptSpec& spec);

// Returns true if several hosts are involved, which share the machine's network: libraries communicate over ports that
// they choose themselves.
[[nodiscard]] bool needs_host_network(const wire::AttemptSpec& spec);
// Returns a name such as "node1": the same on all hosts of a gang, and known to each of them through host_names().
[[nodiscard]] std::string host_name_in(const wire::Gang& gang);
[[nodiscard]] std::string host_names(const wire::Gang& gang);  // an /etc/hosts

// Returns variables of every rank of this host. `interface`: the one with the host's address, empty if not known.
[[nodiscard]] Variables gang_variables(const wire::AttemptSpec& spec, const JobView& view, const std::string& interface);
// Returns variables of this rank alone: its launcher's and its GPUs. The specification's own win over these.
[[nodiscard]] Variables rank_variables(const wire::AttemptSpec& spec, const std::vector<Gpu>& gpus, int local_rank);

// Adds to a run folder the files that start the ranks of a gang; nothing without one. `agent`: our binary as the job
// sees it.
[[nodiscard]] Result<void> make_rank_files(const Path& run, const wire::AttemptSpec& spec, const JobView& view,
                                           const std::vector<Gpu>& gpus, const std::string& agent);

}  // namespace gridctl::agent
