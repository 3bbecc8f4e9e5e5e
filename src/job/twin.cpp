// SPDX-License-Identifier: Apache-2.0
#include "job/twin.hpp"

namespace gridctl::job {

namespace {
constexpr std::size_t k_twin_name_max = 63;
}

Spec twin_spec(const Spec& leader, const JobId& id, WallTime submitted_at, int number) {
  Spec spec = leader;
  const std::string ending = "-r" + std::to_string(number);
  spec.name = spec.name.substr(0, k_twin_name_max - ending.size()) + ending;
  spec.twins = 1;
  spec.twin_of = id;
  spec.checkpoint.copies = 1;
  spec.budget_total.reset();
  spec.max_duration.reset();
  if (spec.deadline) spec.deadline = Deadline{moment_of(*spec.deadline, submitted_at), {}, false};
  return spec;
}

}  // namespace gridctl::job
