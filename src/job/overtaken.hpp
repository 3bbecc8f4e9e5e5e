// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/names.hpp"

namespace gridctl::job {

// Describes how a job came to its end while its own attempt still ran, or without one.
enum class Overtaken : std::uint8_t {
  twin,          // one of its twins was done first
  tasks_done,    // the last task of a bag
  tasks_failed,  // the bag is over, and tasks of it have failed
};
inline constexpr Names<Overtaken, Overtaken::tasks_failed> overtaken_name{"replica_succeeded", "tasks_done",
                                                                          "tasks_failed"};

}  // namespace gridctl::job
