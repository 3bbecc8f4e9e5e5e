// SPDX-License-Identifier: Apache-2.0
// A file system for SQLite, in memory, that keeps what was synced apart from what was only written. A power cut keeps
// the synced bytes and any part of the rest: each unsynced write may have reached the disk whole, in some of its
// sectors, or not at all; files that were made or removed without a sync of their directory may be there or not. Reads,
// writes and syncs can be made to fail; so can everything from the n-th call on, as when the process is killed there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "random.hpp"

struct sqlite3_vfs;

namespace gridctl::sim {

class FaultyDisk {
 public:
  explicit FaultyDisk(Random& random);
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  [[nodiscard]] const std::string& vfs_name() const { return name_; }
  void lose_power();
  void set_trouble(bool full, bool errors) { full_ = full, errors_ = errors; }
  // The process dies at the `calls`-th change from now on: that one may be done by half, later ones are not.
  void kill_after(std::uint64_t calls) { kill_after_ = calls; }
  [[nodiscard]] bool killed() const { return killed_; }
  void revive() { killed_ = false, kill_after_ = 0; }
  // What is wrong with a database that lies here; empty when nothing is. Reads without faults.
  [[nodiscard]] std::string damage(const std::string& path);
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

  struct Change {  // since the last sync
    std::uint64_t offset = 0;
    std::string bytes;
    bool truncates = false;  // to `offset`
  };
  struct File {
    std::string now, synced;
    std::vector<Change> changes;
    bool there = true, there_synced = false;
  };
  // Each gives false when it fails.
  [[nodiscard]] bool change(File& file, Change change);
  [[nodiscard]] bool sync(File& file);
  [[nodiscard]] bool readable() const;
  [[nodiscard]] bool alive();  // counts a change; false when the process is dead
  [[nodiscard]] bool is_full() const { return full_; }
  [[nodiscard]] Random& random() { return random_; }
  std::map<std::string, File> files;

 private:
  Random& random_;
  std::string name_;
  std::unique_ptr<sqlite3_vfs> vfs_;
  bool full_ = false, errors_ = false, killed_ = false;
  std::uint64_t kill_after_ = 0, calls_ = 0;
};

}  // namespace gridctl::sim
