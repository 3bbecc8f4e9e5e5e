// SPDX-License-Identifier: Apache-2.0
// Computes the resources for serving a model: weights, KV cache, the number of simultaneous conversations, and bounds
// on tokens a second. Pure.
#pragma once

#include "plan/device.hpp"
#include "plan/model.hpp"

namespace gridctl::plan {

inline constexpr double k_server_bytes = 1.5e9;  // context, graphs and workspace of a server

struct ServeQuestion {
  Model model;
  Cluster cluster;
  int tp = 1;
  // Holds the bytes of a layer's parameter: 2 for bf16, 1 for fp8, about 0.55 for 4 bits. Embeddings and head stay
  // bf16.
  double weight_bytes = 2;
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
// Returns the bytes of the complete model.
[[nodiscard]] double weights_of(const ServeQuestion& question);
// Returns the tensor parallelism that divides the heads and fits, up to the fast domain: the degree with most tokens a
// second and GPU, and the least. 0: none fits.
[[nodiscard]] int best_tp(const ServeQuestion& question);
[[nodiscard]] int least_tp(const ServeQuestion& question);

}  // namespace gridctl::plan
