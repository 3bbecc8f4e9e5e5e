// SPDX-License-Identifier: Apache-2.0
// Restricts a job that runs as a plain process: as the host's own user, it could read and write everything of that
// user. The restrictions do not isolate like a container; see gridctl-security(7).
#pragma once

#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Lists paths that a job of this attempt may not touch: keys and passwords of the user, files that start programs for
// the user, and the agent's own folder. Inside them, `kept` stays reachable, and `readable` can be read and run.
struct Confinement {
  std::vector<os::Path> hidden;
  std::vector<os::Path> made;  // of the hidden ones: folders that are made where they are missing, or a job would make them
  std::vector<os::Path> pinned;  // folders around those: they cannot be moved away, and others made in their place
  std::vector<os::Path> kept;
  std::vector<os::Path> readable;
};
// `program`: the folder of the agent's own program, through which MPI starts ranks on other hosts; may be empty.
[[nodiscard]] Confinement confinement_of(const os::Path& home, const os::Path& agent_home, const os::Path& attempt,
                                         const os::Path& secrets, const os::Path& program);

// Returns whether such a job has no access to this path, which contains no links.
[[nodiscard]] bool is_hidden(const Confinement& confinement, const os::Path& path);

// Confines the process that becomes the job, and everything that it starts, for ever: no new privileges (set-user-ID
// programs give none), processes outside cannot be inspected and, from Linux 6.12, not be signalled (Landlock), and
// hidden paths do not exist (a mount namespace; not for jobs of root). `unsupported` if the host lacks one of these:
// the others apply. REQUIRES: no other thread.
[[nodiscard]] Result<void> confine(const Confinement& confinement);

}  // namespace gridctl::agent
