// SPDX-License-Identifier: Apache-2.0
// A directory as a remote that keeps copies: a disk, a mounted share, or a host's own folder.
#pragma once

#include <memory>
#include <string_view>

#include "os/files.hpp"
#include "store/backend.hpp"

namespace gridctl::store {

// Relative, at most k_object_name_max bytes, parts of [A-Za-z0-9._-] that do not begin with a dot.
[[nodiscard]] bool is_object_name(std::string_view name);

// A directory that does not hold `mark` is not there (host_unreachable): its disk is not mounted, and what is written
// below the mount point would be lost from sight. An empty mark asks for none. Unfinished objects lie in `.tmp` of the
// directory; those older than a day are swept. Nothing is read or written through symbolic links.
[[nodiscard]] std::unique_ptr<Backend> open_dir_remote(os::Path directory, std::string_view mark);

}  // namespace gridctl::store
