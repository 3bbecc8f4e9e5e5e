// SPDX-License-Identifier: Apache-2.0
// Merges the output of several ranks into one log: every line begins with the label of its rank, and lines of different
// ranks never mix.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr std::size_t k_line_bytes_max = 64 * 1024;            // a longer line is cut
inline constexpr Duration k_line_patience = std::chrono::seconds{1};  // a line without an end is shown after so long

// Turns bytes of one rank into labelled lines. A carriage return ends a line too: progress bars have no other.
class LabelledLines {
 public:
  explicit LabelledLines(std::string label) : label_("[" + std::move(label) + "] ") {}
  void feed(std::string_view bytes, BootTime now, std::string& into);
  // Flushes unfinished lines that have waited too long, or all of them when `over`.
  void flush(BootTime now, bool over, std::string& into);
  [[nodiscard]] bool is_waiting() const { return !line_.empty(); }

 private:
  std::string label_, line_;
  BootTime since_{};
};

// Reads the pipes of all ranks of this host. Never blocks: a log that nobody reads blocks the ranks, not us.
class RankOutput {
 public:
  explicit RankOutput(const std::vector<std::string>& labels);
  [[nodiscard]] bool open();
  [[nodiscard]] int writer(std::size_t rank) const { return pipes_[rank].write.get(); }
  void close_writers();  // ours; the ranks keep theirs

  void add_polls(std::vector<pollfd>& polls, int log) const;
  [[nodiscard]] int patience_ms() const;  // -1: no line waits
  void pump(int log, BootTime now);
  // Returns everything that is left once no rank lives.
  [[nodiscard]] std::string take_rest(BootTime now);

 private:
  struct Pipe {
    os::Fd read, write;
    LabelledLines lines;
  };
  void read_all(BootTime now);

  std::vector<Pipe> pipes_;
  std::string pending_;
};

}  // namespace gridctl::agent
