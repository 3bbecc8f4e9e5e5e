// SPDX-License-Identifier: Apache-2.0
// Reports the host's health, taken when a controller asks and kept on disk, so that many controllers and connections of
// one user share one look. Nothing here delays the connection that asks, unless it says that it will wait.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/ledger.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"
#include "probe/health.hpp"
#include "wire/health.hpp"

namespace gridctl::agent {

class Health {
 public:
  Health(os::Path home, os::Clock& clock);
  [[nodiscard]] wire::HealthReply answer(const wire::HealthRequest& request);

 private:
  struct Shared;  // also the looks' own: one that hangs in the kernel outlives the connection
  std::shared_ptr<Shared> shared_;
};

// Reads the kernel log from /dev/kmsg, otherwise from the journal; or says why it cannot be read.
[[nodiscard]] probe::KernelLogText read_kernel_log(const probe::Toolbox& toolbox);

// Holds the known facts about one process, to find its owner.
struct ProcessFacts {
  std::vector<int> ancestry;  // itself first, then its parents
  bool marked = false;        // its environment names a job of gridctl's
};
[[nodiscard]] ProcessFacts facts_of_process(int pid);
// Returns the owner of a process. Leased: it descends from an attempt that holds this GPU. Leftover: it belongs to a
// job, but no lease covers it.
[[nodiscard]] wire::ProcessOwner owner_of(const ProcessFacts& process, const std::string& gpu_uuid,
                                          const std::vector<Lease>& leases);

}  // namespace gridctl::agent
