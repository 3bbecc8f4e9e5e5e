// SPDX-License-Identifier: Apache-2.0
// Packs the files that each task of a bag leaves (`outputs`) after its output, so that they are kept and fetched
// together: for each file, a line with the length of its path, its mode in octal and its size, and then path and
// content.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/bag_output.hpp"
#include "store/ignore.hpp"

struct stat;

namespace gridctl::agent {

class TaskFiles {
 public:
  TaskFiles(os::Path work, const std::vector<std::string>& patterns);
  [[nodiscard]] bool wanted() const { return !patterns_.empty(); }
  // Files that are in the working directory now belong to no task.
  void begin();
  // Packs the files that the patterns name in the task's folder, or otherwise those changed in the working directory
  // since the last call.
  void pack(const std::string& folder, std::uint64_t bytes_max, const os::Path& run, TaskOutput& into);

 private:
  struct Stamp {
    std::uint64_t inode = 0, size = 0;
    std::int64_t changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Take = std::function<void(const std::string& path, const struct stat& info)>;
  void walk(const os::Path& root, const std::string& below, bool all, int depth, const Take& take);

  os::Path work_;
  std::vector<store::IgnorePattern> patterns_;
  std::map<std::string, Stamp> seen_;
  std::size_t left_ = 0;  // entries that this walk may still look at
};

}  // namespace gridctl::agent
