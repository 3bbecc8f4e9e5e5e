// SPDX-License-Identifier: Apache-2.0
// Derives from a job's file how tightly its parts are coupled: its declarations, the number of hosts and GPUs, and the
// words of its commands, at the places where they have a meaning and never by their letters: `exploration.py` is not
// LoRA, and installing a launcher launches nothing. Pure.
#pragma once

#include <string>
#include <vector>

#include "job/spec.hpp"

namespace gridctl::sched {

// Names the rows of the strategy table.
enum class WorkKind : std::uint8_t {
  pretraining,  // of large models
  simulation,   // CFD, molecular dynamics
  gang,         // anything else over several hosts at once
  fine_tuning,
  one_host,   // several GPUs of one host
  inference,  // in batches
  rendering,
  search,     // of hyper-parameters
  bag,        // independent tasks of any other kind
  federated,  // and training over the WAN
  service,
  single,  // one process
};

struct Coupling {
  WorkKind kind = WorkKind::single;
  job::JobClass job_class = job::JobClass::loose;  // never automatic
  std::string what;                                // "LLM pre-training"
  std::string why;                                 // which keys and words decided
  std::string needs;                               // of links
  bool mixed_vendors = false;                      // may its parts run on GPUs of different vendors?
  std::string strategy;
  job::Backend named = job::Backend::automatic;  // by its own words: "--backend gloo"
  bool operator==(const Coupling&) const = default;
};

[[nodiscard]] Coupling classify(const job::Spec& spec);

// Returns lines such as "class tight: LLM pre-training; num_nodes is 4, torchrun in run", "needs …", "strategy: …".
[[nodiscard]] std::vector<std::string> explain(const Coupling& coupling);

}  // namespace gridctl::sched
