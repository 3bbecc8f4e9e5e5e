// SPDX-License-Identifier: Apache-2.0
// Published runs (tests/data/plan/README.md), and how far the estimates are from them.
#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/estimate.hpp"

namespace gridctl::plan::testing {

using Json = nlohmann::json;

inline std::vector<std::string> lines_of(const std::string& name) {
  std::ifstream in(std::string(GRIDCTL_SOURCE_DIR) + "/tests/data/plan/" + name);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}
inline std::vector<Json> rows_of(const std::string& name) {
  std::vector<Json> rows;
  for (const std::string& line : lines_of(name)) rows.push_back(Json::parse(line));
  return rows;
}

struct Pair {
  std::string name;
  double measured = 0, predicted = 0;
  [[nodiscard]] double off() const { return std::abs(predicted / measured - 1); }
};
inline double mean_off(const std::vector<Pair>& pairs) {
  double sum = 0;
  for (const Pair& pair : pairs) sum += pair.off();
  return pairs.empty() ? 1 : sum / static_cast<double>(pairs.size());
}
inline double share_within(const std::vector<Pair>& pairs, double limit) {
  const auto within = std::count_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.off() <= limit; });
  return static_cast<double>(within) / static_cast<double>(pairs.size());
}

inline std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<double> out;
  for (const double value : values) {
    double rank = 0;
    for (const double other : values) rank += other < value ? 1 : other == value ? 0.5 : 0;
    out.push_back(rank);
  }
  return out;
}
inline double spearman(const std::vector<Pair>& pairs) {
  std::vector<double> a, b;
  for (const Pair& pair : pairs) {
    a.push_back(pair.measured);
    b.push_back(pair.predicted);
  }
  a = ranks(a);
  b = ranks(b);
  const double mean = static_cast<double>(pairs.size()) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return ab / std::sqrt(aa * bb);
}

inline Json ask(Estimator& estimator, Json row, bool calibrate = false) {
  if (calibrate) row["calibrate"] = true;
  return Json::parse(estimator.answer(row.dump()));
}

}  // namespace gridctl::plan::testing
