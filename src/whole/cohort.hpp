// SPDX-License-Identifier: Apache-2.0
// Learns which files of unknown formats belong together from which change together. A value: no I/O, no clock.
//
// A save begins when something changes that has already changed in the present save; the changes from one beginning to
// the
// next are one save. When two saves in a row have changed the same files, the third is complete as soon as all of these
// have changed. Until then, snapshots are provisional: a single save shows neither its end nor its beginning.
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
  // Notes changes of files that nothing else is known about. Returns true if they ended a save, because the next one
  // has begun.
  bool changed(const std::vector<News>& news, BootTime now);
  // Removes these files from the unknown ones.
  void forget(const std::string& path);

  [[nodiscard]] bool idle() const { return current_.empty(); }
  // Returns true if two saves in a row were alike, or this one is like the restored checkpoint: then the files that a
  // save changes are known.
  [[nodiscard]] bool learned() const;
  // Returns true if everything expected to change has changed in this save. Always false without an earlier save.
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
