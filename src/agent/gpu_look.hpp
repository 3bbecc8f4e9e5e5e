// SPDX-License-Identifier: Apache-2.0
// Records how busy the GPUs of this host are, as nvidia-smi and the kernel last reported. All connections of this user share
// one look, and one of them at a time runs the tool.
#pragma once

#include <string>
#include <vector>

#include "base/time.hpp"
#include "base/use.hpp"
#include "os/clock.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

struct GpuLook {
  struct Entry {
    std::string uuid;
    GpuUse use;
  };
  std::string boot_id;
  BootTime at, next;  // when it was taken, and when the next one may be
  int hung = 0;       // times in a row that the tool gave no answer
  std::vector<Entry> gpus;
};

// Returns the look in `folder`, or takes a new one if that is due. Waits for the tool as long as a probe does.
[[nodiscard]] GpuLook look_at_gpus(const os::Path& folder, os::Clock& clock);

}  // namespace gridctl::agent
