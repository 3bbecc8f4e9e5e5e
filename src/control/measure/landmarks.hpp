// SPDX-License-Identifier: Apache-2.0
// Lists places of known position, from the user's file `landmarks` in the state directory: one line each of NAME
// LATITUDE LONGITUDE ADDRESS [COUNTRY]. ADDRESS is @here (this machine), @PROVIDER (a provider whose place is known: it
// measures the others, which cannot shorten the result) or HOST:PORT (hosts measure it themselves, by connecting and
// sending nothing). Only listed addresses are contacted.
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
  // Returns the provider's name, or empty for another kind of address.
  [[nodiscard]] std::string provider() const {
    return address.starts_with('@') && !is_here() ? address.substr(1) : std::string();
  }
};

// Parses degrees such as "-33.87", "33.87S" and "151.2E". usage for anything else.
[[nodiscard]] Result<double> parse_degrees(std::string_view text, char positive, char negative, double max);
// Parses the words of one line; usage says what is wrong.
[[nodiscard]] Result<LandmarkRow> parse_landmark(const std::vector<std::string>& words);
// Returns landmarks by name; none without a file. state_unreadable names the line that cannot be read.
[[nodiscard]] Result<std::vector<LandmarkRow>> read_landmarks(const Paths& paths);
[[nodiscard]] Result<void> write_landmarks(const Paths& paths, std::vector<LandmarkRow> rows);

}  // namespace gridctl::control
