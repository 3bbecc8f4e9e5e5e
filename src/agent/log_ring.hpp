// SPDX-License-Identifier: Apache-2.0
// Implements the bounded output log of an attempt: pieces in a folder, named by the offset of their first byte; the
// oldest are removed. Append-only files with offsets in their names need no index, so any process may die at any
// moment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"
#include "os/files.hpp"

namespace gridctl::agent {

class LogRing {
 public:
  // Continues after what the folder already holds. At most about `bytes_max` bytes stay on disk.
  [[nodiscard]] static Result<LogRing> open(const os::Path& folder, std::uint64_t bytes_max);

  // Never fails: output that arrives faster than the host may store it, or finds no space, is dropped and counted; a
  // line says how much, and why, before the next bytes that are kept.
  void append(std::string_view output, BootTime now);
  // Makes a file of output the ring's next piece, by one rename: it is in the log once, whichever process dies in the
  // meantime. A missing file is success. `refused` if it is not a regular file of at most `bytes_max`: it is removed.
  [[nodiscard]] Result<void> take_file(const os::Path& file, std::uint64_t bytes_max);
  // Appends some of what waits in a pipe; returns false if nothing does. Bytes leave the pipe as they are written, so
  // that a process that dies in the meantime neither loses nor repeats any; only if the file system cannot do that,
  // they pass through us.
  bool take(int pipe, BootTime now);
  // Writes the line that is still due. Call it when the output has ended; returns false if there is still no space for
  // the line.
  bool finish();
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] bool out_of_space() const { return out_of_space_; }

 private:
  static constexpr std::uint64_t k_pieces = 8;  // the coarseness of forgetting
  LogRing(os::Path folder, std::uint64_t bytes_max) : folder_(std::move(folder)), bytes_max_(bytes_max) {}
  std::size_t store(std::string_view output);  // bytes that were kept
  [[nodiscard]] std::size_t move_from(int pipe, std::size_t bytes);
  [[nodiscard]] bool has_room() { return (piece_.valid() && piece_bytes_ < bytes_max_ / k_pieces) || next_piece(); }
  void refill(BootTime now);
  void count(std::size_t wrote);
  bool next_piece();
  void trim_oldest();
  bool tell_dropped();

  os::Path folder_;
  std::uint64_t bytes_max_;
  os::Fd piece_;
  std::uint64_t piece_bytes_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t dropped_ = 0, unwritten_ = 0;  // bytes: too fast; for want of space
  std::string notice_;                         // what of a line about them is still to be written
  double tokens_ = 0;
  BootTime refilled_{};
  bool out_of_space_ = false;
};

struct LogSlice {
  std::uint64_t offset = 0;      // where `bytes` begin: later than asked when the ring overran
  std::uint64_t end_offset = 0;  // of the whole log
  std::string bytes;
};
// Missing pieces (removed during the read) only move the offset on.
[[nodiscard]] Result<LogSlice> read_log(const os::Path& folder, std::uint64_t offset, std::uint32_t bytes_max);
[[nodiscard]] std::uint64_t log_end(const os::Path& folder);

}  // namespace gridctl::agent
