// SPDX-License-Identifier: Apache-2.0
// Reports files that were created in some folders, or renamed into them. If the kernel has no inotify instance left for
// this user (128 by default, shared with editors and file managers) or no watch, the caller must look regularly.
#pragma once

#include <vector>

#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr int k_blind_look_ms = 250;  // between two looks without the kernel's help

class FolderWatch {
 public:
  FolderWatch();
  void add(const os::Path& folder);

  // Returns a descriptor for poll(2), readable when there is news; -1 without the kernel's help.
  [[nodiscard]] int fd() const { return events_.get(); }
  // Returns how long poll(2) may wait for it, in milliseconds; -1 = until there is news.
  [[nodiscard]] int patience_ms() const { return events_.valid() ? -1 : k_blind_look_ms; }
  // Returns true if there may be news since the last call.
  [[nodiscard]] bool drain();

 private:
  void open();

  std::vector<os::Path> folders_;
  os::Fd events_;
};

}  // namespace gridctl::agent
