// SPDX-License-Identifier: Apache-2.0
// Opens a way into a running job: a socket in its run folder on which init listens. Each connection gets its own
// process, `gridctl-agent inside`, which is a child of init: it has the job's user, namespaces, limits and confinement,
// and it ends with the job.
#pragma once

#include <string>
#include <vector>

#include "agent/init.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr const char* k_door = "door";  // in the run folder

class Door {
 public:
  // Without the socket, the job runs as usual, but cannot be entered.
  void open(const os::Path& run);
  [[nodiscard]] int fd() const { return listener_.get(); }
  // Accepts one waiting connection, if any. REQUIRES: no other thread.
  void let_in(const InitPlan& plan, std::vector<std::string> environment) const;

 private:
  os::Fd listener_;
};

// Makes the kernel's memory killer prefer a job's process to those of the host.
void offer_to_oom_killer();

}  // namespace gridctl::agent
