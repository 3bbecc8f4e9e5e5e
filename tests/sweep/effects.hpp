// SPDX-License-Identifier: Apache-2.0
// Which system calls leave something outside of the process that makes them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace gridctl::sweep {

struct Call {
  pid_t process = 0;
  std::uint64_t number = 0;
  std::uint64_t arguments[6] = {};
};

// False only for calls that surely change nothing that outlives the process: reads, memory, its own descriptors, locks
// (they end with it), waiting, and writes to descriptors without a name, as of an event loop's wake-up. A process
// killed before such a call has left what it would have left killed after it.
[[nodiscard]] bool has_effect(const Call& call);
// Those that a full or broken disk fails: writes to files, what makes or renames them, and syncs.
[[nodiscard]] bool can_fail(const Call& call);
// A write to a file of at least two bytes, which a kill may cut short.
[[nodiscard]] bool can_tear(const Call& call);
[[nodiscard]] std::string call_name(std::uint64_t number);

}  // namespace gridctl::sweep
