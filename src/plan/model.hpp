// SPDX-License-Identifier: Apache-2.0
// Describes a decoder-only transformer for the planner: its shape, its number of parameters, and their places. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace gridctl::plan {

struct Model {
  std::string name;
  int layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0;
  int head_dim = 0;  // 0: hidden / heads
  std::int64_t vocab = 0;
  std::int64_t max_sequence = 0;   // 0: not said
  bool gated_mlp = true;           // SwiGLU, GeGLU: three matrices instead of two
  bool tied_embeddings = false;    // one matrix for input and output
  bool learned_positions = false;  // a matrix of `positions` rows
  bool biases = false;             // LayerNorm and linear layers with biases (GPT)
  std::int64_t positions = 0;
  int experts = 0;  // of a mixture-of-experts layer; 0: dense
  int experts_per_token = 0;
  int shared_experts = 0;  // always active, each `expert_ffn` wide
  int expert_ffn = 0;      // 0: ffn
  int dense_layers = 0;    // the first layers of a mixture model that have none
  // Describe multi-head latent attention (DeepSeek): ranks of its compressed projections; 0: ordinary attention.
  int q_rank = 0, kv_rank = 0, rope_dim = 0;
  double params_said = 0;  // as printed by whoever published it; 0: computed

  [[nodiscard]] int dim_of_head() const { return head_dim > 0 ? head_dim : heads > 0 ? hidden / heads : 0; }
  [[nodiscard]] bool known_shape() const { return layers > 0 && hidden > 0; }
  [[nodiscard]] bool mixture() const { return experts > 1; }
};

// Holds the parameters of one layer by the parallelism that divides them: tensor parallelism divides all, expert
// parallelism only `experts`.
struct LayerParams {
  double attention = 0, mlp = 0, norms = 0, router = 0;
  double experts = 0;     // all experts of the layer together
  double active_mlp = 0;  // of mlp and experts, what one token passes through
  [[nodiscard]] double dense() const { return attention + mlp + norms + router; }
  [[nodiscard]] double all() const { return dense() + experts; }
};
// Counts the parameters of one layer; `mixture`: one that has experts. REQUIRES: known_shape().
[[nodiscard]] LayerParams layer_params(const Model& model, bool mixture);

struct ParamCount {
  double total = 0;
  double embedding = 0;  // the input matrix, with learned positions
  double head = 0;       // the output matrix; 0 when it is the input's
  double layers = 0;     // all of them
  double experts = 0;    // of `layers`, what lies in experts
  double active = 0;     // what a token passes through, the input matrix not counted
};
// Counts the parameters. A published total scales the computed parts, so that they add up to it.
[[nodiscard]] ParamCount count_params(const Model& model);

// Returns the families that are compiled in, such as "llama-3-8b", in order of their names.
[[nodiscard]] std::span<const Model> families();
// Finds a family by name; case, '-', '_', '.' and blanks do not matter, and the maker and "-instruct" may be left off.
[[nodiscard]] const Model* family(std::string_view name);

// Returns the usual shape (Llama's) for this number of parameters, for --params 7B.
[[nodiscard]] Model usual_shape(double params);

// Reads config.json of a dense or mixture decoder of transformers. Errors name the missing or invalid key.
[[nodiscard]] Result<Model> read_config(std::string_view json);

// Returns the reasons why the shape is impossible, one line each.
[[nodiscard]] std::vector<std::string> faults_of(const Model& model);

}  // namespace gridctl::plan
