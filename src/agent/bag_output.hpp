// SPDX-License-Identifier: Apache-2.0
// The output of a bag's tasks: one stream for each worker, in files of equal length, of which the results know where
// each task's part lies.
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

// The output of a task that has not ended: in memory while it is small, then in a file without a name.
class TaskOutput {
 public:
  // Keeps at most `bytes_max` altogether.
  void add(std::string_view bytes, std::uint64_t bytes_max, const os::Path& folder);
  [[nodiscard]] std::uint64_t size() const { return spilled_ + bytes_.size(); }
  [[nodiscard]] std::uint64_t dropped() const { return dropped_; }
  // Whether the last lines, as far as they are in memory, tell of a full disk.
  [[nodiscard]] bool tells_of_a_full_disk() const;

 private:
  friend class OutputWriter;
  std::string bytes_;  // behind what lies in the file
  os::Fd file_;
  std::uint64_t spilled_ = 0, dropped_ = 0;
};

// Pieces of all outputs, one behind the other.
class OutputWriter {
 public:
  OutputWriter(os::Path run, std::uint64_t total_max) : run_(std::move(run)), total_max_(total_max) {}
  // Whether all of it lies there; nothing does otherwise.
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
// Removes whole pieces before `from`. Where the output that is left begins.
[[nodiscard]] std::uint64_t drop_output(const os::Path& control, const os::Path& run, std::uint64_t from);

}  // namespace gridctl::agent
