// SPDX-License-Identifier: Apache-2.0
// Holds what a guest's job sends into the network to the rate that the owner allows to all work of guests together:
// gridctl-lend(7), LIMITS.
#pragma once

#include <span>
#include <thread>

#include "agent/attempt_dir.hpp"
#include "os/mutex.hpp"
#include "os/shared_rate.hpp"

namespace gridctl::agent {

inline constexpr std::string_view k_shape_command = "shape";

// `gridctl-agent shape PID BYTES`: os::shape_network_of, in a process of its own. Returns the exit status.
[[nodiscard]] int shape_command(std::span<char* const> arguments);

// Keeps the rate of one container on a thread of its own, while its attempt runs.
class UpWatch {
 public:
  UpWatch(AttemptDir attempt, int payload_pid, os::Clock& clock);
  ~UpWatch();
  UpWatch(const UpWatch&) = delete;
  UpWatch& operator=(const UpWatch&) = delete;

 private:
  void watch();
  void look();
  void hold(std::uint64_t bytes_per_second);

  const AttemptDir attempt_;
  const int pid_;
  os::Clock& clock_;
  os::SharedRate shared_;
  std::uint64_t held_ = 0, sent_ = 0;  // bytes a second, 0: not held; and bytes that the container had sent
  BootTime looked_{}, terms_at_{};
  std::optional<std::uint64_t> limit_;  // bytes a second
  bool failed_ = false;                 // the log says so
  os::Mutex mutex_;
  os::Condition wake_;
  bool ends_ GRIDCTL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace gridctl::agent
