// SPDX-License-Identifier: Apache-2.0
// Uses a directory as a remote that keeps copies: a disk, a mounted share, or a host's own folder.
#pragma once

#include <memory>
#include <string_view>

#include "os/files.hpp"
#include "store/backend.hpp"

namespace gridctl::store {

// Accepts relative names of at most k_object_name_max bytes, with parts of [A-Za-z0-9._-] that do not begin with a dot.
[[nodiscard]] bool is_object_name(std::string_view name);

// A directory without `mark` counts as absent (host_unreachable): its disk is not mounted, and files written below the
// mount point would be hidden later. An empty mark checks nothing. Unfinished objects are in `.tmp` of the directory;
// those older than a day are removed. Nothing is read or written through symbolic links.
[[nodiscard]] std::unique_ptr<Backend> open_dir_remote(os::Path directory, std::string_view mark);

}  // namespace gridctl::store
