// SPDX-License-Identifier: Apache-2.0
// `gridctl plan estimate`: a run described by a line of JSON, answered by a line of JSON. Pure.
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

// One line, with what it leaves out filled in.
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

// Answers lines in their order; rows to calibrate with change the answers to those of their group that come after.
class Estimator {
 public:
  // One JSON object, without a newline. What is wrong with the line is its "error".
  [[nodiscard]] std::string answer(std::string_view line);
  [[nodiscard]] std::size_t refused() const { return refused_; }

 private:
  // Runs on one class of GPU in one precision have coefficients of their own.
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
