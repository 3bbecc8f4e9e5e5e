// SPDX-License-Identifier: Apache-2.0
// Tests of files without permission, also as root.
#pragma once

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace gridctl::testing {

// As long as it lives, this thread and those that it begins may do no more with files than their modes allow.
class ObeysModes {
 public:
  ObeysModes() {
    ::syscall(SYS_capget, &header_, before_.data());
    auto without = before_;
    without[0].effective &= ~((1u << CAP_DAC_OVERRIDE) | (1u << CAP_DAC_READ_SEARCH));
    ::syscall(SYS_capset, &header_, without.data());
  }
  ~ObeysModes() { ::syscall(SYS_capset, &header_, before_.data()); }
  ObeysModes(const ObeysModes&) = delete;
  ObeysModes& operator=(const ObeysModes&) = delete;

 private:
  __user_cap_header_struct header_{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> before_{};
};

}  // namespace gridctl::testing
