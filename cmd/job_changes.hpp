// SPDX-License-Identifier: Apache-2.0
// Finds the changes that a job file would make to a running job.
#pragma once

#include <string>
#include <vector>

#include "job/spec.hpp"
#include "registry/records.hpp"

namespace gridctl::cmd {

// Returns keys of the file whose values differ, and inputs whose content does; for people.
[[nodiscard]] std::vector<std::string> changes_of(const job::Spec& before,
                                                  const std::vector<registry::Input>& inputs_before,
                                                  const job::Spec& after,
                                                  const std::vector<registry::Input>& inputs_after);

}  // namespace gridctl::cmd
