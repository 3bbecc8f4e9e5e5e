// SPDX-License-Identifier: Apache-2.0
// Watches the syncs, renames and removals that a program asks the disk for, and their order. A test that is linked with
// disk_calls.cpp sees those of the code that it calls and of the processes that it forks, and may let one of them fail.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace gridctl::testing {

struct DiskCall {
  enum class Kind : char { sync = 's', rename = 'r', remove = 'u' };
  Kind kind{};
  std::filesystem::path path;  // a rename's new name
  std::filesystem::path from;  // its old one
};

// Asks `look` before each call below that folder, one at a time, in whichever process makes it: 0, or the errno with
// which the call fails instead. There is one watcher at a time.
class DiskWatcher {
 public:
  using Look = std::function<int(const DiskCall&)>;
  DiskWatcher(const std::filesystem::path& below, Look look);
  DiskWatcher(const DiskWatcher&) = delete;
  DiskWatcher& operator=(const DiskWatcher&) = delete;
  ~DiskWatcher();
};

// Keeps what happened below a folder, in this process and in its children.
class DiskRecord {
 public:
  explicit DiskRecord(const std::filesystem::path& below);
  ~DiskRecord();
  DiskRecord(const DiskRecord&) = delete;
  DiskRecord& operator=(const DiskRecord&) = delete;

  // Counts the calls up to the one that gave this file its newest content: its last rename. 0: it got no name.
  [[nodiscard]] std::size_t named(const std::filesystem::path& file) const;
  // Counts them up to the one since which that outlives a power cut: its content was synced before it got its name, and
  // its folder afterwards. 0: it never does.
  [[nodiscard]] std::size_t durable(const std::filesystem::path& file) const;
  // Says whether its name outlives one, whatever is in it: for a folder, whose files have syncs of their own or need none.
  [[nodiscard]] bool is_kept(const std::filesystem::path& entry) const;
  [[nodiscard]] std::string text() const;  // for messages

 private:
  [[nodiscard]] std::vector<DiskCall> calls() const;
  [[nodiscard]] std::size_t entered(const std::filesystem::path& entry) const;

  int fd_;  // of a file without a name that children share
  DiskWatcher watcher_;
};

}  // namespace gridctl::testing
