// SPDX-License-Identifier: Apache-2.0
#include "os/share.hpp"

#include <linux/fs.h>
#include <sys/ioctl.h>

namespace gridctl::os {

bool share_extents(int from_fd, int to_fd) { return ::ioctl(to_fd, FICLONE, from_fd) == 0; }

}  // namespace gridctl::os
