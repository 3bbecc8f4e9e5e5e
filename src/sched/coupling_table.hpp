// SPDX-License-Identifier: Apache-2.0
// Holds the knowledge of coupling.cpp as tables.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sched/coupling.hpp"

namespace gridctl::sched {

// Defines the strategy table.
struct Strategy {
  WorkKind kind;
  job::JobClass job_class;
  std::string_view what, needs;
  bool mixed_vendors;
  std::string_view strategy;
};
[[nodiscard]] const Strategy& strategy_of(WorkKind kind);

// Lists the clues in a job file. Several at once form a set of bits.
enum Clue : std::uint32_t {
  clue_tasks = 1 << 0,       // tasks: N
  clue_rare = 1 << 1,        // workload.sync_every > 1
  clue_nodes = 1 << 2,       // num_nodes > 1
  clue_gpus = 1 << 3,        // several GPUs of a host
  clue_launcher = 1 << 4,    // of processes that talk to each other
  clue_collective = 1 << 5,  // a library of collectives is named
  clue_federated = 1 << 6,
  clue_service = 1 << 7,
  clue_rendering = 1 << 8,
  clue_search = 1 << 9,
  clue_inference = 1 << 10,
  clue_simulation = 1 << 11,
  clue_pretraining = 1 << 12,
  clue_fine_tuning = 1 << 13,
};

// States where a word is searched for: as the program of a command (with more words among its arguments), as a part of
// a script's name, as a part of that or of an option's name, or among what a package manager installs.
enum class Where : std::uint8_t { program, script, name, package };

struct ClueWord {
  Clue clue;
  Where where;
  std::string_view words;  // of a program: "vllm serve"
};
[[nodiscard]] const std::vector<ClueWord>& clue_words();

// The first rule whose clues are all present determines the kind. The last has none.
struct KindRule {
  std::uint32_t clues;
  WorkKind kind;
};
[[nodiscard]] std::span<const KindRule> kind_rules();

}  // namespace gridctl::sched
