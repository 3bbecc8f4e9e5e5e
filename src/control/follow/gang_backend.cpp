// SPDX-License-Identifier: Apache-2.0
#include "control/follow/gang_backend.hpp"

#include <algorithm>

#include "sched/coupling.hpp"

namespace gridctl::control {

namespace {

sched::Reach reach_between(const job::Spec& spec, const std::vector<registry::Provider>& hosts) {
  if (hosts.size() == 1) return sched::Reach::host;
  if (sched::classify(spec).job_class == job::JobClass::tight) return sched::Reach::site;
  const std::string& site = hosts.front().site;
  const bool one_site = !site.empty() && std::all_of(hosts.begin(), hosts.end(), [&](const registry::Provider& host) {
    return host.site == site;
  });
  return one_site ? sched::Reach::site : sched::Reach::wan;
}

std::vector<Vendor> vendors_of(const job::Attempt& attempt, const std::vector<registry::Provider>& hosts) {
  std::vector<Vendor> vendors;
  for (std::size_t i = 0; i < attempt.members.size() && i < hosts.size(); ++i)
    for (const Gpu& gpu : hosts[i].inventory->gpus) {
      const std::vector<std::string>& leased = attempt.members[i].gpu_uuids;
      if (std::find(leased.begin(), leased.end(), gpu.uuid) != leased.end()) vendors.push_back(gpu.vendor);
    }
  return vendors;
}

}  // namespace

sched::BackendChoice gang_backend(const job::Spec& spec, const job::Attempt& attempt,
                                  const std::vector<registry::Provider>& hosts) {
  // The members of a gang communicate with each other, whatever the job's class.
  const sched::BackendQuestion question{job::JobClass::medium, vendors_of(attempt, hosts), reach_between(spec, hosts),
                                        spec.workload.backend};
  const Result<sched::BackendChoice> choice = sched::choose_backend(question);
  return choice ? *choice : sched::BackendChoice{job::Backend::gloo, choice.error().message};
}

std::map<std::string, std::string> gang_variables(const job::Spec& spec, const job::Attempt& attempt,
                                                  const std::vector<registry::Provider>& hosts, std::size_t rank) {
  if (!attempt.is_gang() || rank >= hosts.size()) return {};
  sched::Rendezvous rendezvous;
  rendezvous.backend = gang_backend(spec, attempt, hosts).backend;
  rendezvous.reach = reach_between(spec, hosts);
  for (const registry::Provider& host : hosts) rendezvous.members.push_back(&*host.inventory);
  std::map<std::string, std::string> variables = sched::backend_environment(rendezvous, rank);
  // The agent knows the interface at which others reached it; from here, it could only be guessed.
  for (const char* known : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "OMPI_MCA_btl_tcp_if_include",
                            "OMPI_MCA_oob_tcp_if_include"})
    variables.erase(known);
  return variables;
}

std::vector<std::string> explain_backend(const job::Spec& spec, const job::Attempt& attempt,
                                         const std::vector<registry::Provider>& hosts) {
  if (!attempt.is_gang()) return {};
  const sched::BackendChoice choice = gang_backend(spec, attempt, hosts);
  std::vector<std::string> lines{"members communicate through " + std::string(job::backend_name(choice.backend)) +
                                 ": " + choice.why};
  for (std::size_t i = 0; i < attempt.members.size(); ++i) {
    std::string line;
    for (const auto& [name, value] : gang_variables(spec, attempt, hosts, i))
      if (!spec.envs.contains(name)) line += " " + name + "=" + value;
    if (!line.empty()) lines.push_back(attempt.members[i].host.value + ":" + line);
  }
  return lines;
}

}  // namespace gridctl::control
