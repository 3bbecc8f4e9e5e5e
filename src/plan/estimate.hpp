// SPDX-License-Identifier: Apache-2.0
// Implements `gridctl plan estimate`: each line of JSON that describes a run gets a line of JSON as its answer. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/calibrate.hpp"
#include "plan/device.hpp"
#include "plan/parallelism.hpp"

namespace gridctl::plan {

inline constexpr std::size_t k_row_bytes_max = 64 * 1024;  // a line; longer ones are no description of a run

// Holds one line with its omitted values filled in.
struct Row {
  Training training;
  Parallelism parallelism;
  Cluster cluster;
  std::string group;  // rows measured together
  bool calibrate = false;
  std::optional<double> measured_seconds, measured_peak;  // bytes
  std::vector<std::string> notes;                         // columns that nobody knows
  bool memory_known = false, time_known = false;          // enough is said for them
  bool batch_said = false, recompute_said = false, stages_said = false;
};
[[nodiscard]] Result<Row> read_row(std::string_view line);

// Answers lines in their order; rows to calibrate with change the answers to later rows of their group.
class Estimator {
 public:
  // Returns one JSON object, without a newline. Errors in the line become its "error".
  [[nodiscard]] std::string answer(std::string_view line);
  [[nodiscard]] std::size_t refused() const { return refused_; }

 private:
  // Holds separate coefficients for runs on one class of GPU in one precision.
  struct Kind {
    std::vector<TimedRun> runs;
    Terms coefficients{};
  };
  struct Peaks {
    std::vector<MeasuredPeak> runs;
    MemoryConstants constants;
  };
  struct Group {
    std::map<std::string, Kind> kinds;
    std::vector<double> ratios;  // measured to shipped, of all kinds
    std::map<Framework, Peaks> peaks;
  };
  static Terms coefficients_of(const Group& group, const Row& row, const Terms& shipped);
  std::string answer_row(const Row& row);
  std::map<std::string, Group> groups_;
  std::size_t refused_ = 0;
};

}  // namespace gridctl::plan
