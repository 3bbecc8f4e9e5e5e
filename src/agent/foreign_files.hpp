// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Works like os::remove_tree, but also removes files that a rootless container has given to other users of it: on the
// host they belong to no user, and only the user's own namespace may remove them.
[[nodiscard]] Result<void> remove_job_files(const os::Path& folder);

}  // namespace gridctl::agent
