// SPDX-License-Identifier: Apache-2.0
// Manages the output of a bag's tasks: one stream for each worker, in files of equal length; the results record where
// each task's part is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

inline constexpr const char* k_output_from_file = "output_from";  // in ctl: what lay before has been removed
inline constexpr std::uint64_t k_output_piece_bytes = 16ull << 20;

[[nodiscard]] os::Path output_piece(const os::Path& run, std::uint64_t number);

// Holds the output of a running task: in memory while it is small, then in a file without a name.
class TaskOutput {
 public:
  // Keeps at most `bytes_max` in total.
  void add(std::string_view bytes, std::uint64_t bytes_max, const os::Path& folder);
  [[nodiscard]] std::uint64_t size() const { return spilled_ + bytes_.size(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  // Returns whether the last lines in memory mention a full disk.
  [[nodiscard]] bool tells_of_a_full_disk() const;

 private:
  friend class OutputWriter;
  std::string bytes_;  // behind what lies in the file
  os::Fd file_;
  std::uint64_t spilled_ = 0, dropped_ = 0;
};

// Writes pieces of all outputs, one after another.
class OutputWriter {
 public:
  OutputWriter(os::Path run, std::uint64_t total_max) : run_(std::move(run)), total_max_(total_max) {}
  // Returns whether all of it was written; otherwise nothing was.
  [[nodiscard]] bool append(TaskOutput& output);
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] bool is_half_full() { return !has_room(total_max_ / 2); }

 private:
  [[nodiscard]] bool has_room(std::uint64_t bytes);
  [[nodiscard]] bool write(std::string_view bytes);
  [[nodiscard]] bool copy(const os::Fd& from, std::uint64_t bytes);

  os::Path run_;
  std::uint64_t total_max_;
  std::uint64_t end_ = 0, first_piece_ = 0;
  std::optional<std::uint64_t> number_;  // of the piece that is open
  os::Fd piece_;
};

struct OutputSlice {
  std::uint64_t offset = 0;
  std::string bytes;
};
[[nodiscard]] Result<OutputSlice> read_output(const os::Path& run, std::uint64_t begin, std::uint64_t offset,
                                              std::uint32_t bytes_max);
// Removes complete pieces before `from`. Returns where the remaining output starts.
[[nodiscard]] std::uint64_t drop_output(const os::Path& control, const os::Path& run, std::uint64_t from);

}  // namespace gridctl::agent
