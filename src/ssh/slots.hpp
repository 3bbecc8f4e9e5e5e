// SPDX-License-Identifier: Apache-2.0
// Limits this process to 8 simultaneous logins to one host: sshd drops more (MaxStartups 10:30:100).
#pragma once

#include <string>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/clock.hpp"

namespace gridctl::ssh {

class LoginSlot {
 public:
  // Waits for a free slot; timed_out at the deadline.
  [[nodiscard]] static Result<LoginSlot> acquire(const std::string& address, BootTime deadline, os::Clock& clock);
  LoginSlot(LoginSlot&& other) noexcept;
  LoginSlot& operator=(LoginSlot&&) = delete;
  ~LoginSlot();

 private:
  explicit LoginSlot(std::string address) : address_(std::move(address)) {}
  std::string address_;  // empty when moved from
};

inline constexpr int k_logins_per_host_max = 8;

}  // namespace gridctl::ssh
