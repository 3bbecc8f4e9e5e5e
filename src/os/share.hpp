// SPDX-License-Identifier: Apache-2.0
// Lets files share their content on disk until one of them is written to (reflinks).
#pragma once

namespace gridctl::os {

// Gives the empty file `to_fd` the content of `from_fd` without copying it. Returns false if the file system cannot do
// that.
[[nodiscard]] bool share_extents(int from_fd, int to_fd);

}  // namespace gridctl::os
