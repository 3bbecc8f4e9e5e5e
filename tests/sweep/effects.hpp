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
// (they end with it), waiting, writes to descriptors without a name, as of an event loop's wake-up, syncs (a kill is no
// power cut), and making what is there or removing what is not. A process killed before such a call has left what it
// would have left killed after it.
[[nodiscard]] bool has_effect(const Call& call);
// One whose effect nobody sees before a later call: what stands in a file under its temporary name, before the name is
// changed; what stands in a database and its journal, before the journal is cut, as until then the next reader undoes
// it; and lines of our own logs, which only people read. A kill before it is the kill before the next that is seen.
[[nodiscard]] bool is_hidden(const Call& call);
// Those that a full or broken disk fails: writes to files, what makes or renames them, and syncs.
[[nodiscard]] bool can_fail(const Call& call);
// A write to a file of at least two bytes, which a kill may cut short.
[[nodiscard]] bool can_tear(const Call& call);
[[nodiscard]] std::string call_name(std::uint64_t number);
// The file behind its first argument when that is a descriptor, or its path; empty when it has neither.
[[nodiscard]] std::string target_of(const Call& call);

}  // namespace gridctl::sweep
