// SPDX-License-Identifier: Apache-2.0
// Spot instances as they were.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>

#include "forecast/trace.hpp"

namespace gridctl::forecast {

inline const std::filesystem::path k_traces = std::filesystem::path(GRIDCTL_SOURCE_DIR) / "tests/data/spot";

inline Trace read_trace(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return parse_trace(text.str(), path.stem().string()).value();
}

}  // namespace gridctl::forecast
