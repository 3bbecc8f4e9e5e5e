// SPDX-License-Identifier: Apache-2.0
// Holds what leaves a network namespace to a rate, without root: the namespace has to belong to this user.
#pragma once

#include <cstdint>

#include "base/result.hpp"

namespace gridctl::os {

// The queue of a device; bytes. The burst holds the largest packet that a device of slirp4netns passes.
struct Shape {
  std::uint64_t rate = 0, burst = 0, queue = 0;
};
[[nodiscard]] Shape shape_for(std::uint64_t bytes_per_second);

// Holds each device but loopback in the network of process `pid` to a rate in bytes a second (sch_tbf); 0 lifts that.
// Enters that network for good: call it in a process that does nothing else, and has one thread.
[[nodiscard]] Result<void> shape_network_of(int pid, std::uint64_t bytes_per_second);

// Holds the network of this process itself; it needs the rights there.
[[nodiscard]] Result<void> shape_own_network(std::uint64_t bytes_per_second);

// Tries it in a network of its own, in a child process. unsupported: the kernel or the rights of this user do not allow it.
[[nodiscard]] Result<void> try_shaping();

}  // namespace gridctl::os
