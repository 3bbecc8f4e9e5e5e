// SPDX-License-Identifier: Apache-2.0
// Controls this process's use of processor and memory.
#pragma once

namespace gridctl::os {

// Lowers the priority of the calling thread. On other systems than Linux, where that would change the complete process,
// it does nothing.
void work_modestly();

// Keeps freed memory for the next use, up to 64 MiB: mapping the pages of a buffer of some MiB costs as much as
// processing it once. It applies to the complete process; call it before there are threads.
void keep_freed_memory();

}  // namespace gridctl::os
