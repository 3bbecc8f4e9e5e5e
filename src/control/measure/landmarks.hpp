// SPDX-License-Identifier: Apache-2.0
// Places of known position, as the user listed them in the file `landmarks` of the state directory: a line each of
// NAME LATITUDE LONGITUDE ADDRESS [COUNTRY]. ADDRESS is @here (this machine), @PROVIDER (a provider whose place is
// known: it measures the others, which they cannot make shorter) or HOST:PORT (hosts measure it themselves, by
// connecting and sending nothing). None is contacted unless it stands there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "control/reach/paths.hpp"
#include "sched/geo/country.hpp"

namespace gridctl::control {

inline constexpr std::size_t k_landmarks_max = 64;

struct LandmarkRow {
  sched::Landmark mark;
  std::string address;
  [[nodiscard]] bool is_here() const { return address == "@here"; }
  // The provider's name, empty when it is none.
  [[nodiscard]] std::string provider() const {
    return address.starts_with('@') && !is_here() ? address.substr(1) : std::string();
  }
};

// "-33.87", "33.87S", "151.2E": degrees. usage when it is none.
[[nodiscard]] Result<double> parse_degrees(std::string_view text, char positive, char negative, double max);
// The words of one line; usage with what is wrong.
[[nodiscard]] Result<LandmarkRow> parse_landmark(const std::vector<std::string>& words);
// By name; none when there is no file. state_unreadable names the line that cannot be read.
[[nodiscard]] Result<std::vector<LandmarkRow>> read_landmarks(const Paths& paths);
[[nodiscard]] Result<void> write_landmarks(const Paths& paths, std::vector<LandmarkRow> rows);

}  // namespace gridctl::control
