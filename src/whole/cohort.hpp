// SPDX-License-Identifier: Apache-2.0
// Files of which nobody knows what belongs together: learned from what changes together. A value: no I/O, no clock.
//
// A save begins when something changes that has changed in it already; what changed from one beginning to the next is a
// save. When two saves in a row have changed the same files, the third is whole as soon as all of these have changed.
// Until then what is taken is provisional: one save shows neither its end nor its beginning.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "whole/history.hpp"

namespace gridctl::whole {

class Cohort {
 public:
  // Sets the content of a restored checkpoint: the first save is expected to change all of it.
  void expect(std::set<std::string> slots) { expected_ = std::move(slots); }
  // Changes of files that nothing else is known of. True when a save ended by it, for the next has begun.
  bool changed(const std::vector<News>& news, BootTime now);
  // These files are no longer of the unknown ones.
  void forget(const std::string& path);

  [[nodiscard]] bool idle() const { return current_.empty(); }
  // Two saves in a row were alike, or this one is like the restored checkpoint: what a save changes is known.
  [[nodiscard]] bool learned() const;
  // All that is expected to change has changed in this save. Without any save before, never.
  [[nodiscard]] bool complete() const;
  // Returns the parts that are still to change, for people.
  [[nodiscard]] std::string awaited() const;
  [[nodiscard]] std::size_t saves() const { return saves_; }
  [[nodiscard]] std::vector<std::string> paths() const;  // changed in this save
  [[nodiscard]] BootTime changed_at() const { return changed_at_; }
  [[nodiscard]] Duration longest_gap() const { return longest_gap_; }  // between two changes within a save
  // Returns the longest pause within the writing of a single file.
  [[nodiscard]] Duration longest_pause() const { return longest_pause_; }

 private:
  struct Member {
    std::string path;
    BootTime at;
  };
  [[nodiscard]] bool begins_anew(const News& news) const;

  std::map<std::string, Member> current_;  // by slot
  std::set<std::string> last_, before_last_;
  std::set<std::string> expected_;  // by the restored checkpoint
  std::size_t saves_ = 0;           // that have ended
  BootTime changed_at_{};
  Duration longest_gap_{}, longest_pause_{};
};

}  // namespace gridctl::whole
