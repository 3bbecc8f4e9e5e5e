// SPDX-License-Identifier: Apache-2.0
// Builds the question to `gridctl sim`: the job, the hosts, the costs, and the source of each figure.
#pragma once

#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "forecast/forecast.hpp"

namespace gridctl::cmd {

struct SimQuestion {
  job::Spec spec;
  forecast::Grid grid;
  forecast::Settings settings;
  std::vector<job::CheckpointPolicy> intervals;  // asked for by --interval; empty: those around the tuned one
  std::vector<std::string> assumptions;          // whole lines, for people
};
// Fails with usage, bad_job_file, no_provider_fits, and the errors of the registry.
[[nodiscard]] Result<SimQuestion> read_sim_question(Context& context, const Parsed& parsed);

// Holds one choice and its result.
struct SimRow {
  std::string checkpoints;  // "tuned (12m)", "15m", "off"
  std::string hosts;        // "any host", "ada alone"
  job::CheckpointPolicy::Interval interval = job::CheckpointPolicy::Interval::automatic;
  std::optional<double> every;         // seconds; nullopt: tuned, or off
  std::vector<std::string> providers;  // that it was pinned to; empty: none
  forecast::Figures figures;
};
struct SimReport {
  std::vector<SimRow> rows;
  std::size_t fastest = 0, cheapest = 0;  // indices
  std::vector<std::string> arithmetic;    // whole lines
};
[[nodiscard]] std::string sim_text(const Context& context, const SimQuestion& question, const SimReport& report);
[[nodiscard]] std::string sim_json(const SimQuestion& question, const SimReport& report);
// Formats a duration with two units: "10d4h", "3h12m", "4m10s".
[[nodiscard]] std::string long_time(double seconds);

}  // namespace gridctl::cmd
