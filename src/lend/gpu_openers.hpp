// SPDX-License-Identifier: Apache-2.0
// Notices programs that begin to use a GPU by the device files that they open. A look costs less than a millisecond of
// processor time, where a vendor's tool takes a tenth of a second or more: it is asked only when somebody has come.
#pragma once

#include <map>

#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::lend {

class GpuOpeners {
 public:
  explicit GpuOpeners(os::Clock& clock, os::Path proc = "/proc") : proc_(std::move(proc)), clock_(clock) {}

  // Returns whether a process that is younger than half a minute has opened a GPU since the look before.
  // Processes of other users cannot be read and are not noticed, nor those that were there at the first look: the
  // vendor's tool, which is asked in any case every few seconds, tells of them.
  [[nodiscard]] bool look();

 private:
  struct Process {
    BootTime seen{};       // for the first time
    bool counted = false;  // it holds a GPU, which was told
  };
  [[nodiscard]] bool has_gpu(const os::Path& process) const;

  const os::Path proc_;
  os::Clock& clock_;
  std::map<int, Process> known_;
  bool begun_ = false;
};

}  // namespace gridctl::lend
