// SPDX-License-Identifier: Apache-2.0
#include "agent/init_environment.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "os/entries.hpp"

namespace gridctl::agent {

namespace {
constexpr std::uint64_t k_environment_bytes = 2u << 20;  // 512 KiB by the protocol, with room for ours

void set_variable(std::vector<std::string>& environment, std::string assignment) {
  const std::string name = assignment.substr(0, assignment.find('=') + 1);
  std::erase_if(environment, [&](const std::string& other) { return other.starts_with(name); });
  environment.push_back(std::move(assignment));
}

// Returns the assignments of a file, NUL-separated.
std::vector<std::string> assignments_in(const os::Path& file) {
  const auto text = os::read_file(file, k_environment_bytes);
  if (!text) return {};
  std::vector<std::string> assignments = split(*text, '\0');
  std::erase_if(assignments, [](const std::string& one) { return one.find('=') == std::string::npos; });
  return assignments;
}
}  // namespace

std::vector<std::string> load_environment(const InitPlan& plan) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  for (std::string& assignment : assignments_in(plan.run / "env")) set_variable(environment, std::move(assignment));
  const bool chosen = std::ranges::any_of(
      environment, [](const std::string& assignment) { return assignment.starts_with("PYTHONUNBUFFERED="); });
  if (!chosen) environment.emplace_back("PYTHONUNBUFFERED=1");
  if (plan.secrets.empty()) return environment;
  const auto names = os::list_directory(plan.secrets);
  if (!names) return environment;
  for (const std::string& name : *names)
    if (auto value = os::read_file(plan.secrets / name, k_environment_bytes))
      set_variable(environment, name + "=" + *value);
  return environment;
}

std::vector<std::string> rank_labels(const InitPlan& plan) {
  const auto text = os::read_file(plan.run / k_ranks_file, k_environment_bytes);
  return text ? split_lines(*text) : std::vector<std::string>{};
}

std::vector<std::string> rank_environment(const InitPlan& plan, std::vector<std::string> environment,
                                          std::size_t rank) {
  for (std::string& assignment : assignments_in(plan.run / (k_rank_env + std::to_string(rank)))) {
    const std::string name = assignment.substr(0, assignment.find('='));
    if (!plan.secrets.empty() && os::exists(plan.secrets / name)) continue;
    set_variable(environment, std::move(assignment));
  }
  return environment;
}

}  // namespace gridctl::agent
