// SPDX-License-Identifier: Apache-2.0
// Prepares the folders of an attempt for its first command: workdir, mounts, restored checkpoint, image archive.
// Everything may be repeated after a kill at any moment.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "agent/job_view.hpp"

namespace gridctl::agent {

struct Prepared {
  std::vector<Bind> binds;  // beyond those that every attempt has
  Path image_archive;       // empty = none
};

// `doing` is called with "workdir" and "restore". REQUIRES: no process of the attempt was ever started.
[[nodiscard]] Result<Prepared> prepare_folders(const AttemptDir& attempt, const wire::AttemptSpec& spec,
                                               const std::function<void(const std::string&)>& doing);

// Removes the links that a plain process' absolute mounts and checkpoint path needed outside our folder.
void remove_links(const AttemptDir& attempt);

}  // namespace gridctl::agent
