// SPDX-License-Identifier: Apache-2.0
// Chooses the library through which the members of a gang communicate, and its variables. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/spec.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"
#include "sched/backend.hpp"

namespace gridctl::control {

// Returns the library that the job asks for, or the one that suits the GPUs and the network between its members.
// `hosts`: those of all members, by rank.
[[nodiscard]] sched::BackendChoice gang_backend(const job::Spec& spec, const job::Attempt& attempt,
                                                const std::vector<registry::Provider>& hosts);
// Returns the variables that the member with this rank gets from its inventory (sched::backend_environment); empty for
// an attempt on one host.
[[nodiscard]] std::map<std::string, std::string> gang_variables(const job::Spec& spec, const job::Attempt& attempt,
                                                                const std::vector<registry::Provider>& hosts,
                                                                std::size_t rank);
// Returns lines such as "gloo (CPUs alone)" and "ada: GLOO_SOCKET_IFNAME=eth0", without variables that the job sets
// itself.
[[nodiscard]] std::vector<std::string> explain_backend(const job::Spec& spec, const job::Attempt& attempt,
                                                       const std::vector<registry::Provider>& hosts);

}  // namespace gridctl::control
