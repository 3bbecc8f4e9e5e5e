// SPDX-License-Identifier: Apache-2.0
#include "cmd/job_changes.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gridctl::cmd {

namespace {
// Returns keys of the job file whose values differ.
std::vector<std::string> changed_keys(const job::Spec& before, const job::Spec& after) {
  const auto one = nlohmann::json::parse(job::to_json(before)), other = nlohmann::json::parse(job::to_json(after));
  std::vector<std::string> keys;
  for (const auto& [key, value] : other.items())
    if (key != "deadline" && one.value(key, nlohmann::json()) != value) keys.push_back(key);
  for (const auto& [key, value] : one.items())
    if (!other.contains(key)) keys.push_back(key);
  return keys;
}

// Returns inputs whose content differs from that at the job's submission.
std::vector<std::string> changed_inputs(const std::vector<registry::Input>& before,
                                        const std::vector<registry::Input>& after) {
  std::vector<std::string> roles;
  for (const registry::Input& input : after) {
    const bool same = std::ranges::any_of(before, [&](const registry::Input& old) {
      return old.role == input.role && old.target == input.target && old.root == input.root;
    });
    if (!same)
      roles.push_back(input.role == "workdir" ? "the working directory"
                      : input.role == "mount" ? "the files for " + input.target
                                              : "the image archive");
  }
  return roles;
}
}  // namespace

std::vector<std::string> changes_of(const job::Spec& before, const std::vector<registry::Input>& inputs_before,
                                    const job::Spec& after, const std::vector<registry::Input>& inputs_after) {
  std::vector<std::string> changed = changed_keys(before, after);
  for (std::string& role : changed_inputs(inputs_before, inputs_after)) changed.push_back(std::move(role));
  return changed;
}

}  // namespace gridctl::cmd
