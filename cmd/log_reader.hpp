// SPDX-License-Identifier: Apache-2.0
// Joins the outputs of all attempts of a job into one stream, from the files that the controller writes: one for each
// host of an attempt.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "control/follow/masks.hpp"
#include "control/reach/paths.hpp"

namespace gridctl::cmd {

class LogReader {
 public:
  // `only`: that attempt and no other.
  LogReader(control::Paths paths, JobId job, std::optional<AttemptNumber> only = {});

  // Passes on what was written since the last call, in pieces of at most 256 KiB. An attempt's files are finished
  // before the next one's begin. If an attempt has several files, pieces end with a line, and none ends with a possible
  // beginning of a secret, which is masked when the rest is there; `all`: passes on these ends too.
  using Sink = std::function<void(AttemptNumber attempt, std::string_view bytes)>;
  [[nodiscard]] Result<void> read_new(const Sink& sink, bool all = false);
  // Makes read_new return the last `lines` lines that exist now (of the newest attempts that have them), for each host.
  [[nodiscard]] Result<void> begin_at_tail(std::uint64_t lines);
  // REQUIRES: called by the sink. Returns the file, and the position in it, of the bytes passed to the sink.
  using File = std::pair<AttemptNumber, int>;  // attempt, the host's place among its hosts
  struct Place {
    File file;
    std::uint64_t position = 0;
  };
  [[nodiscard]] Place place() const { return place_; }
  // Returns attempts that have a file, ascending.
  [[nodiscard]] Result<std::vector<AttemptNumber>> attempts() const;

 private:
  [[nodiscard]] Result<std::vector<File>> files() const;
  [[nodiscard]] Result<void> read_file(const File& file, bool whole_lines, bool all, const Sink& sink);

  control::Paths paths_;
  JobId job_;
  std::optional<AttemptNumber> only_;
  control::Masks masks_;
  AttemptNumber current_{};                // 0 = none begun
  std::map<File, std::uint64_t> offsets_;  // read so far
  Place place_;
};

}  // namespace gridctl::cmd
