// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <map>

#include "agent/cgroup.hpp"
#include "agent/process_tree.hpp"

namespace gridctl::agent {
namespace {

constexpr std::uint64_t k_group_processes_max = 4096;

// Returns true for variables of a launcher that started the agent, as on a node of a Slurm cluster; they do not belong
// to the job.
bool is_of_a_launcher(const std::string& name) {
  for (const char* prefix : {"SLURM_", "SRUN_", "OMPI_", "PMI_", "PMIX_", "HYDRA_", "TORCHELASTIC_"})
    if (name.starts_with(prefix)) return true;
  for (const char* one : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "GROUP_RANK",
                          "MASTER_ADDR", "MASTER_PORT", "TF_CONFIG", "JAX_COORDINATOR_ADDRESS", "RAY_ADDRESS"})
    if (name == one) return true;
  return false;
}

// Returns our own environment without the variables of the SSH session, of a launcher, or of gridctl.
std::map<std::string, std::string> clean_environment() {
  std::map<std::string, std::string> kept;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string assignment(*entry);
    const auto cut = assignment.find('=');
    if (cut == std::string::npos || assignment.starts_with("SSH_") || assignment.starts_with("GRIDCTL_")) continue;
    if (is_of_a_launcher(assignment.substr(0, cut))) continue;
    kept[assignment.substr(0, cut)] = assignment.substr(cut + 1);
  }
  return kept;
}

class ProcessEngine final : public Engine {
 public:
  // Orphans of the job become children of the supervisor when init is killed.
  ProcessEngine() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

  Result<std::string> ensure_image(const wire::AttemptSpec&, const Path&) override { return std::string{}; }

  Result<void> launch(const wire::AttemptSpec& spec, const LaunchPlan& plan) override {
    group_ = Group::make(plan.name, {spec.cpus, spec.memory_bytes, k_group_processes_max});
    InitPlan init = plan.init;
    init.groups = group_.folders();
    std::vector<std::string> arguments{plan.agent.string(), "init"};
    for (std::string& argument : to_arguments(init)) arguments.push_back(std::move(argument));
    os::SpawnOptions options;
    options.new_session = true;
    options.environment = clean_environment();
    auto pid = os::spawn(arguments, options);
    if (!pid) return std::move(pid).error();
    launched_ = os::identify(*pid).value_or(os::ProcessId{*pid, 0});
    return {};
  }

  bool is_gone(const std::string&) override { return launched_ && !os::is_alive(*launched_); }

  std::vector<os::ProcessId> members(const std::string& name, const Path& host_run) override {
    if (group_.empty()) group_ = Group::find(name);
    std::vector<os::ProcessId> all = os::descendants(::getpid());
    if (const auto init = lock_holder(host_run / "lock")) {
      merge(all, {*init});
      merge(all, os::descendants(init->pid));
    }
    merge(all, group_.members());
    // Orphans of an earlier supervisor did not become our children; their environment identifies them.
    if (!launched_) merge(all, marked_processes((host_run / "metrics").string()));
    std::erase_if(all, [](const os::ProcessId& process) { return process.pid == ::getpid(); });
    return all;
  }

  bool set_frozen(const std::string& name, bool frozen) override {
    if (group_.empty()) group_ = Group::find(name);
    return group_.set_frozen(frozen);
  }

  Result<void> remove(const std::string& name) override {
    if (group_.empty()) group_ = Group::find(name);
    group_.remove();
    return {};
  }

 private:
  Group group_;
  std::optional<os::ProcessId> launched_;  // by us, not by a supervisor before us
};

}  // namespace

std::unique_ptr<Engine> make_process_engine() { return std::make_unique<ProcessEngine>(); }

}  // namespace gridctl::agent
