// SPDX-License-Identifier: Apache-2.0
// Locks a directory itself, for code that builds one and leaves no other file behind.
#pragma once

#include <optional>
#include <utility>

#include "os/files.hpp"

namespace gridctl::os {

// Holds an exclusive and advisory lock (flock) until destruction or process death; it moves with the directory when
// that is renamed.
class DirectoryLock {
 public:
  // Returns nullopt if another process holds the lock, or has just renamed or removed the directory.
  [[nodiscard]] static Result<std::optional<DirectoryLock>> try_acquire(const Path& directory);

 private:
  explicit DirectoryLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace gridctl::os
