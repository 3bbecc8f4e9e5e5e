// SPDX-License-Identifier: Apache-2.0
// A lock on a directory itself, for those who build one and leave no other file behind.
#pragma once

#include <optional>
#include <utility>

#include "os/files.hpp"

namespace gridctl::os {

// Exclusive and advisory (flock), held until destruction or process death; goes with the directory when it is renamed.
class DirectoryLock {
 public:
  // nullopt when someone else holds it, or has just renamed or removed the directory.
  [[nodiscard]] static Result<std::optional<DirectoryLock>> try_acquire(const Path& directory);

 private:
  explicit DirectoryLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace gridctl::os
