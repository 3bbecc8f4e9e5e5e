// SPDX-License-Identifier: Apache-2.0
#include "plan/model.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::plan {

namespace {
double attention_params(const Model& model) {
  const double h = model.hidden, a = model.heads, d = model.dim_of_head();
  if (model.kv_rank > 0) {  // DeepSeek-V2/V3: compressed queries, keys and values, and a shared rotary key
    const double rope = model.rope_dim;
    const double queries = model.q_rank > 0 ? h * model.q_rank + model.q_rank * a * (d + rope) : h * a * (d + rope);
    return queries + h * (model.kv_rank + rope) + model.kv_rank * a * 2 * d + a * d * h;
  }
  const double k = model.kv_heads > 0 ? model.kv_heads : model.heads;
  if (a <= 0) return 4 * h * h;
  return 2 * h * d * (a + k) + (model.biases ? d * (a + 2 * k) + h : 0);
}
}  // namespace

LayerParams layer_params(const Model& model, bool mixture) {
  LayerParams out;
  const double h = model.hidden;
  const double matrices = model.gated_mlp ? 3 : 2;
  out.attention = attention_params(model);
  out.norms = model.biases ? 4 * h : 2 * h;
  if (mixture && model.mixture()) {
    const double one = matrices * h * (model.expert_ffn > 0 ? model.expert_ffn : model.ffn);
    out.experts = one * model.experts;
    out.mlp = one * model.shared_experts;
    out.router = h * model.experts;
    out.active_mlp = one * (std::max(model.experts_per_token, 1) + model.shared_experts);
  } else {
    out.mlp = matrices * h * model.ffn + (model.biases ? model.ffn + h : 0);
    out.active_mlp = out.mlp;
  }
  return out;
}

ParamCount count_params(const Model& model) {
  ParamCount out;
  if (!model.known_shape()) {
    out.total = out.active = out.layers = model.params_said;
    return out;
  }
  const double h = model.hidden, v = static_cast<double>(model.vocab);
  const int mixture_layers = model.mixture() ? std::max(model.layers - model.dense_layers, 0) : 0;
  const LayerParams dense = layer_params(model, false), mixed = layer_params(model, true);
  out.experts = mixture_layers * mixed.experts;
  out.layers = (model.layers - mixture_layers) * dense.all() + mixture_layers * mixed.all();
  out.embedding = v * h + (model.learned_positions ? static_cast<double>(model.positions) * h : 0);
  out.head = model.tied_embeddings ? 0 : v * h;
  const double last_norm = model.biases ? 2 * h : h;
  out.total = out.layers + out.embedding + out.head + last_norm;
  out.active = (model.layers - mixture_layers) * (dense.attention + dense.active_mlp) +
               mixture_layers * (mixed.attention + mixed.active_mlp + mixed.router) + v * h;
  if (model.params_said > 0) {
    const double scale = model.params_said / out.total;
    out.total = model.params_said;
    for (double* part : {&out.layers, &out.embedding, &out.head, &out.experts, &out.active}) *part *= scale;
  }
  return out;
}

Model usual_shape(double params) {
  // Width grows with the cube root of the size: width to depth is about 128, as in GPT-3 and Llama.
  Model model;
  model.name = "usual shape";
  model.vocab = 32000;
  const auto shaped = [&](int hidden) {
    model.hidden = hidden;
    model.heads = std::max(hidden / 128, 1);
    model.kv_heads = model.heads;
    model.ffn = ((hidden * 8 / 3) + 255) / 256 * 256;
    model.layers = 1;
    const double one = layer_params(model, false).all();
    model.layers = std::max(1, static_cast<int>(std::lround((params - 2.0 * 32000 * hidden) / one)));
    return static_cast<double>(hidden) / model.layers;
  };
  int best = 128;
  double distance = 1e300;
  for (int hidden = 128; hidden <= 65536; hidden += 128) {
    const double off = std::abs(std::log(shaped(hidden) / 128));
    if (off < distance) {
      distance = off;
      best = hidden;
    }
  }
  shaped(best);
  model.params_said = params;
  return model;
}

std::vector<std::string> faults_of(const Model& model) {
  std::vector<std::string> out;
  const auto number = [](auto value) { return std::to_string(value); };
  if (!model.known_shape()) return out;
  if (model.heads > 0 && model.head_dim == 0 && model.hidden % model.heads != 0)
    out.push_back("hidden size " + number(model.hidden) + " is not divisible by " + number(model.heads) + " heads");
  if (model.heads > 0 && model.kv_heads > 0 && model.heads % model.kv_heads != 0)
    out.push_back(number(model.heads) + " heads are not divisible by " + number(model.kv_heads) + " key-value heads");
  if (model.experts > 1 && model.experts_per_token < 1)
    out.push_back(number(model.experts) + " experts, but no experts_per_token");
  if (model.experts_per_token > std::max(model.experts, 1))
    out.push_back(number(model.experts_per_token) + " experts per token of only " + number(model.experts));
  return out;
}

}  // namespace gridctl::plan
