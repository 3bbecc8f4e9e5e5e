// SPDX-License-Identifier: Apache-2.0
// Builds the description of the other members that each host of an attempt receives. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "job/spec.hpp"
#include "wire/gang.hpp"

namespace gridctl::control {

struct GangHostFacts {
  std::string name;     // of the provider
  std::string address;  // as the other members reach it; numeric
  int gpus = 0;         // leased there
};

struct GangFacts {
  JobId job;
  Epoch epoch;
  int restarts = 0;
  int ports_skipped = 0;             // ranges that were found in use (job::gang_port)
  std::vector<GangHostFacts> hosts;  // in the order of their ranks
  Digest token;                      // drawn for this epoch
};

// Returns the description for the host at this position; nullopt for a job that is a single process on one host. `run`:
// the command of the variant that runs there.
[[nodiscard]] std::optional<wire::Gang> gang_of(const job::Spec& spec, const std::string& run, const GangFacts& facts,
                                                std::size_t position);

}  // namespace gridctl::control
