// SPDX-License-Identifier: Apache-2.0
// Restrictions of a job that runs as a plain process: as the host's own user, it could read and write everything of
// that user. They do not isolate as a container does; see gridctl-security(7).
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

// Paths that a job of this attempt may not touch: keys and passwords of the user, what starts programs for the user, and
// the agent's own folder. Of what lies in them, `kept` stays within reach, and `readable` can be read and run.
struct Confinement {
  std::vector<os::Path> hidden;
  std::vector<os::Path> made;  // of the hidden ones: folders that are made where they are missing, or a job would make them
  std::vector<os::Path> pinned;  // folders around those: they cannot be moved away, and others made in their place
  std::vector<os::Path> kept;
  std::vector<os::Path> readable;
};
// `program`: the folder of the agent's own program, by which MPI starts ranks on other hosts; may be empty.
[[nodiscard]] Confinement confinement_of(const os::Path& home, const os::Path& agent_home, const os::Path& attempt,
                                         const os::Path& secrets, const os::Path& program);

// Whether such a job is kept from this path, which has no links in it.
[[nodiscard]] bool is_hidden(const Confinement& confinement, const os::Path& path);

// For the process that is to become the job, and all that it starts, for ever: no new privileges (set-user-ID programs
// give none), processes outside cannot be looked into and, from Linux 6.12, not be signalled (Landlock), and what is
// hidden is not there (a mount namespace; not for jobs of root). `unsupported` where the host lacks one of these: the
// others hold. REQUIRES: no other thread.
[[nodiscard]] Result<void> confine(const Confinement& confinement);

}  // namespace gridctl::agent
