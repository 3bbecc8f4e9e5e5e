// SPDX-License-Identifier: Apache-2.0
// Writes a job as one HTML page that needs no network: the timeline of its attempts, its loss curve, checkpoints, cost
// and events. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "registry/records.hpp"

namespace gridctl::ui {

// Holds a number that an attempt printed or reported, by step; steps ascend.
struct Curve {
  AttemptNumber attempt;
  std::vector<std::pair<double, double>> points;  // step, value
};

struct JobPage {
  registry::Job job;
  std::vector<registry::AttemptRecord> attempts;    // oldest first
  std::vector<registry::Checkpoint> checkpoints;    // oldest first
  std::vector<registry::EventRecord> events;        // oldest first; those beyond k_page_events are left out
  std::string number;                               // the name of the curves, such as "loss"; empty: there are none
  std::vector<Curve> curves;
  std::string list_price;                           // the cost at the list price, for people; empty: unknown
  std::string version;                              // of gridctl
};
inline constexpr std::size_t k_page_events = 300, k_page_points = 400, k_page_checkpoints = 50;

// A page begins with this text: a file that begins with it is a page and may be replaced by a newer one.
inline constexpr std::string_view k_page_mark = "<!doctype html>\n<!-- gridctl job report -->\n";
// Returns at most some 300 kB. All texts of the job and its hosts are escaped.
[[nodiscard]] std::string job_page(const JobPage& page, WallTime now);

}  // namespace gridctl::ui
