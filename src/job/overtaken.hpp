// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace gridctl::job {

// Describes how a job came to its end while its own attempt still ran, or without one.
enum class Overtaken : std::uint8_t {
  twin,          // one of its twins was done first
  tasks_done,    // the last task of a bag
  tasks_failed,  // the bag is over, and tasks of it have failed
};
[[nodiscard]] std::string_view overtaken_name(Overtaken by);  // "replica_succeeded"

}  // namespace gridctl::job
