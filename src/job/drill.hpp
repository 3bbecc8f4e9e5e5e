// SPDX-License-Identifier: Apache-2.0
// Judges a drill: whether a job that lost its host continues where it was, or restarts. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/ids.hpp"

namespace gridctl::job {

// Reads the numbers after a word of progress ("step 12", "global_step=12", "\"epoch\": 3") in a program's output. Bytes
// come in pieces of any size and are not trusted: only 4 KiB of a line are read, numbers have at most 15 digits.
class ProgressReader {
 public:
  struct Range {
    std::uint64_t lowest = 0, highest = 0;
    bool operator==(const Range&) const = default;
  };
  void read(std::string_view bytes);
  // Keyed by word: "step", "iteration", "iter", "batch", "epoch".
  [[nodiscard]] const std::map<std::string, Range>& ranges() const { return ranges_; }
  // Returns true if some word has appeared with two different numbers, or no word at all.
  [[nodiscard]] bool moves_or_is_mute() const;

 private:
  void read_line();
  std::string line_;
  std::map<std::string, Range> ranges_;
};

struct SavedState {  // of a checkpoint
  CheckpointSeq seq;
  Digest root;
  std::uint64_t files = 0;
};
struct DrillFacts {
  std::string from, to;  // hosts: the one taken for lost, and that of the next attempt
  SavedState first;      // the first of the attempt that was killed
  SavedState restored;   // what the next attempt began with
  std::map<std::string, ProgressReader::Range> before, after;
  std::optional<SavedState> saved_after;  // the first of the next attempt
  bool succeeded = false;                 // the next attempt ended well
};

struct DrillVerdict {
  std::string word;                         // "yes", "no", "unknown"
  std::string why;                          // one line for people
  std::optional<std::uint64_t> steps_lost{};  // in the program's own count
};
// Returns nullopt if nothing is proven yet. With `final`, nothing more will come, and there always is a verdict.
[[nodiscard]] std::optional<DrillVerdict> judge_drill(const DrillFacts& facts, bool final);

}  // namespace gridctl::job
