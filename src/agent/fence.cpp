// SPDX-License-Identifier: Apache-2.0
#include "agent/fence.hpp"

namespace gridctl::agent {

Result<Epoch> read_fence(const JobDir& job) {
  auto number = read_number(job.path / "fence");
  if (!number) return std::move(number).error().with_context("while reading the fence of job " + job.job.value);
  return Epoch{number->has_value() ? static_cast<std::uint64_t>(**number) : 0};
}

Result<void> write_fence(const JobDir& job, Epoch epoch) {
  return os::write_file_durably(job.path / "fence", std::to_string(epoch.value) + "\n");
}

}  // namespace gridctl::agent
