// SPDX-License-Identifier: Apache-2.0
#include "os/priority.hpp"

#include <sys/resource.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace gridctl::os {

void work_modestly() {
#ifdef __linux__
  constexpr int k_nice = 10;  // a tenth of what an ordinary thread gets of a busy processor
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, k_nice));
#endif
}

void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

}  // namespace gridctl::os
