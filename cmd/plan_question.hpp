// SPDX-License-Identifier: Apache-2.0
// Reads the question of `plan train` and `plan serve` from the command line: the model, the training and the machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/command.hpp"
#include "cmd/context.hpp"
#include "plan/search.hpp"
#include "sched/query/host_facts.hpp"

namespace gridctl::cmd {

// Tokens of a step if no batch is given, for training and for fine-tuning.
inline constexpr std::int64_t k_tokens_of_step = 4'194'304, k_tokens_of_tuning = 131'072;

// Describes equal machines that a plan may use together.
struct Machines {
  plan::Cluster cluster;
  int nodes = 1;
  double usd_per_gpu_hour = 0;
  double failures_per_node_hour = 0;
  std::string gpu;                   // key of the catalogue
  std::vector<std::string> hosts;    // of the registry; empty: as the command line says
  std::string site;                  // of those
  bool rdma = false;                 // they have InfiniBand or RoCE among each other
  double between = 0;                // bytes a second of the slowest measured pair, or by --link; 0: not known
  std::vector<std::string> sources;  // where each figure is from, for people
  double uplink = 0;                 // bytes a second, the slowest measured; 0: not measured
};

// Reads --model NAME|config.json or --params N.
[[nodiscard]] Result<plan::Model> read_model(const Parsed& parsed);
// Reads "7B", "350M", "20B tokens": a number with K, M, B or T.
[[nodiscard]] Result<double> read_amount(std::string_view option, std::string_view text);
// Formats a rate as "10 Gbit/s".
[[nodiscard]] std::string rate_text(double bytes_per_s);
// Reads --gpu NAME:COUNT[xNODES], otherwise the hosts of the registry that --on allows, grouped by GPU and count.
[[nodiscard]] Result<std::vector<Machines>> read_machines(Context& context, const Parsed& parsed);

// Returns hosts with GPUs in groups of equal machines at one site; leaves out hosts without GPUs.
[[nodiscard]] std::vector<Machines> grouped(const std::vector<const sched::HostFacts*>& hosts);

}  // namespace gridctl::cmd
