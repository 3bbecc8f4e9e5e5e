// SPDX-License-Identifier: Apache-2.0
// Finds the parallelisms of a training that fit some machines, and the fastest or cheapest of them. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plan/device.hpp"
#include "plan/memory.hpp"
#include "plan/timing.hpp"

namespace gridctl::plan {

// Defines the share of a GPU's memory that stays free, because allocators fragment, and estimates err (theory 1.7).
inline constexpr double k_memory_margin = 0.08;

enum class RankBy : std::uint8_t { time, cost, expected };
[[nodiscard]] std::optional<RankBy> rank_of(std::string_view text);

// Holds degrees that the user wants; absent ones are searched for.
struct Wanted {
  std::optional<int> dp, tp, pp, cp, ep, zero, virtual_stages, micro_batch;
  std::optional<Recompute> recompute;
  std::optional<Offload> offload;
};
// Parses "dp=4,tp=8,recompute=full".
[[nodiscard]] Result<Wanted> read_wanted(std::string_view text);

// Holds the failure rate of nodes, and the cost of a checkpoint.
struct Risk {
  double failures_per_node_hour = 0;
  double checkpoint_rate = 2e9;  // bytes a second that a node writes
  double restart_s = 300;        // from a failure until work goes on
};

struct Question {
  Training training;
  Cluster cluster;
  int nodes = 1;                // at most so many of the cluster's nodes
  bool fewer_nodes = true;      // fewer may be used
  double usd_per_gpu_hour = 0;  // 0: not known
  double tokens = 0;            // of the whole training; 0: one step
  Risk risk;
  Wanted wanted;
  RankBy rank = RankBy::time;
  std::optional<Terms> coefficients;  // refitted from runs of the user's own
  std::optional<MemoryConstants> constants;  // the same
  std::optional<double> budget_usd, deadline_s;
  // Returns the reason why the plan's target cannot run a layout; empty: it can.
  std::function<std::string(const Training&, const Parallelism&)> refuses;
};

struct Plan {
  Parallelism parallelism;
  Memory memory;
  StepTime time;
  Traffic traffic;
  double tokens_per_s = 0;
  double mfu = 0;         // 0..1
  double hours = 0;       // of the whole training, without failures
  double efficiency = 1;  // share of the time that is progress, with failures and checkpoints
  double usd = 0;         // expected, with them
  [[nodiscard]] double expected_hours() const { return hours / efficiency; }
};

enum class Reason : std::uint8_t {
  heads,  // not divisible by tp, or other divisions
  layers,
  sequence,
  batch,
  sharding,
  recompute,
  experts,
  memory,
  host_memory,  // of the node, for what is offloaded
  refused,      // by Question::refuses
  needless,     // recomputes or offloads what fits without
  budget,
  deadline,
  count
};
[[nodiscard]] std::string_view text_of(Reason reason);

struct Rejections {
  std::array<std::size_t, static_cast<std::size_t>(Reason::count)> count{};
  // Holds the smallest of the layouts that need too much memory, and the first of each other kind.
  std::optional<Plan> smallest;
  std::array<std::optional<Parallelism>, static_cast<std::size_t>(Reason::count)> example{};
};

struct Answer {
  std::vector<Plan> best;      // the choice, then the others by rank; at most k_best
  std::vector<Plan> frontier;  // no other is both quicker and cheaper; by time
  std::map<int, Plan> by_gpus;  // the quickest of each number of GPUs
  Rejections rejected;
  std::size_t looked_at = 0;
  std::size_t fitting = 0;
};
inline constexpr std::size_t k_best = 20;
[[nodiscard]] Answer search(const Question& question);

// Returns contradictions between the given parts and the model, the batch or the GPUs, one line each.
[[nodiscard]] std::vector<std::string> faults_of_wanted(const Question& question);

// Plans one parallelism, whether it fits or not. REQUIRES: possible(training, parallelism).
[[nodiscard]] Plan plan_of(const Question& question, const TimingFacts& facts, const Parallelism& parallelism);
[[nodiscard]] std::optional<Reason> reason_against(const Training& training, const Parallelism& parallelism);

// Explains the choice of this parallelism by the mission's rule: data parallel if it fits one GPU; otherwise sharding,
// tensor parallelism within a node, pipelines across nodes. One sentence a line.
[[nodiscard]] std::vector<std::string> explain_choice(const Question& question, const Plan& plan);
// Explains each rejected kind of parallelism with its count, its example and the numbers.
[[nodiscard]] std::vector<std::string> explain_rejections(const Question& question, const Answer& answer);

}  // namespace gridctl::plan
