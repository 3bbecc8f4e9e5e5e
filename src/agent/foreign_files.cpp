// SPDX-License-Identifier: Apache-2.0
#include "agent/foreign_files.hpp"

#include <unistd.h>

#include "os/process.hpp"

namespace gridctl::agent {

namespace {
constexpr Duration k_patience = std::chrono::minutes{2};  // for a working directory of many files
}

Result<void> remove_job_files(const os::Path& folder) {
  Result<void> removed = os::remove_tree(folder);
  if (removed || ::geteuid() == 0 || !os::find_program("podman")) return removed;
  os::RunOptions options;
  options.timeout = k_patience;
  const auto unshared = os::run({"podman", "unshare", "rm", "-rf", "--one-file-system", "--", folder.string()}, options);
  return unshared && unshared->status.success() ? os::remove_tree(folder) : removed;
}

}  // namespace gridctl::agent
