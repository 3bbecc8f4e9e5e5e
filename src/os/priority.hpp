// SPDX-License-Identifier: Apache-2.0
// How this process takes processor and memory.
#pragma once

namespace gridctl::os {

// From now on the calling thread gives way to others that want the processor. On other systems than Linux, where that
// would change the whole process, it does nothing.
void work_modestly();

// Freed memory is kept for the next use, up to 64 MiB: the pages of a buffer of some MiB cost as much as what is done
// with it once. For the whole process, before it has threads.
void keep_freed_memory();

}  // namespace gridctl::os
