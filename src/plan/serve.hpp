// SPDX-License-Identifier: Apache-2.0
// What it takes to serve a model: weights, KV cache, how many conversations at once, and bounds on tokens a second.
// Pure.
#pragma once

#include "plan/device.hpp"
#include "plan/model.hpp"

namespace gridctl::plan {

struct ServeQuestion {
  Model model;
  Cluster cluster;
  int tp = 1;
  double weight_bytes = 2;  // of each parameter: 2 bf16, 1 fp8, about 0.55 of 4 bits
  double cache_bytes = 2;   // of each cached value
  double context = 8192;    // tokens of a conversation
  double share = 0.9;       // of the GPU's memory that the server takes
};
struct ServePlan {
  double weights = 0;           // bytes on each GPU
  double cache_per_token = 0;   // bytes on each GPU
  double cache = 0;             // bytes that are left for it
  double sequences = 0;         // of `context` tokens, whole ones
  double tokens_per_s_one = 0;  // bound of one conversation: all active weights are read for each token
  double tokens_per_s_all = 0;  // bound with `sequences` of them
  double prefill_per_s = 0;     // tokens of prompts
  bool fits = false;
};
[[nodiscard]] ServePlan plan_serve(const ServeQuestion& question);
// The least tensor parallelism that divides the heads and fits, up to the fast domain; 0: none.
[[nodiscard]] int least_tp(const ServeQuestion& question);

}  // namespace gridctl::plan
