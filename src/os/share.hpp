// SPDX-License-Identifier: Apache-2.0
// Files that share their content on disk until one of them is written to (reflinks).
#pragma once

namespace gridctl::os {

// Gives the empty file `to_fd` the content of `from_fd` without copying it. Returns false where the file system cannot.
[[nodiscard]] bool share_extents(int from_fd, int to_fd);

}  // namespace gridctl::os
