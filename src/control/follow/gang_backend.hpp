// SPDX-License-Identifier: Apache-2.0
// By which library the members of a gang talk, and the variables by which it finds its way. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "job/spec.hpp"
#include "job/state.hpp"
#include "registry/records.hpp"
#include "sched/backend.hpp"

namespace gridctl::control {

// The library that the job asks for, else the one that fits the GPUs and the way between its members. `hosts`: of all
// members, by rank.
[[nodiscard]] sched::BackendChoice gang_backend(const job::Spec& spec, const job::Attempt& attempt,
                                                const std::vector<registry::Provider>& hosts);
// Returns the variables that the member with this rank gets by its inventory (sched::backend_environment); empty for an
// attempt on one host.
[[nodiscard]] std::map<std::string, std::string> gang_variables(const job::Spec& spec, const job::Attempt& attempt,
                                                                const std::vector<registry::Provider>& hosts,
                                                                std::size_t rank);
// "gloo (CPUs alone); ada: GLOO_SOCKET_IFNAME=eth0", a line each, without what the job sets itself.
[[nodiscard]] std::vector<std::string> explain_backend(const job::Spec& spec, const job::Attempt& attempt,
                                                       const std::vector<registry::Provider>& hosts);

}  // namespace gridctl::control
