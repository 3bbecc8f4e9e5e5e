// SPDX-License-Identifier: Apache-2.0
#include "plan/serve.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::plan {

namespace {
constexpr double k_runtime = 1.5e9;     // bytes: context, graphs and workspace of a server
constexpr double k_read_share = 0.8;    // of the memory's rate that decoding reaches
constexpr double k_matrix_share = 0.5;  // of the peak that prompts reach
}  // namespace

ServePlan plan_serve(const ServeQuestion& question) {
  ServePlan out;
  const Model& m = question.model;
  const ParamCount count = count_params(m);
  const double t = question.tp;
  out.weights = count.total * question.weight_bytes / t;
  // Latent attention caches one compressed vector; ordinary attention a key and a value for each key-value head.
  const double kv = std::max(m.kv_heads, 1);
  const double values = m.kv_rank > 0 ? m.kv_rank + m.rope_dim : 2 * kv * m.dim_of_head() / std::min(t, kv);
  out.cache_per_token = m.layers * values * question.cache_bytes;
  out.cache = std::max(0.0, question.cluster.device.memory * question.share - k_runtime - out.weights);
  out.sequences = std::floor(out.cache / (out.cache_per_token * question.context));
  out.fits = out.sequences >= 1;
  const double rate = question.cluster.device.memory_rate * k_read_share;
  const double active = std::min(count.active + count.embedding, count.total) * question.weight_bytes / t;
  const double cache_one = out.cache_per_token * question.context;
  out.tokens_per_s_one = rate / (active + cache_one);
  // A full batch reads every expert, and every conversation's cache; it can be bound by arithmetic, too.
  const double together = std::max(out.sequences, 1.0);
  const double reading =
      together * rate / ((m.mixture() && together > 8 ? out.weights : active) + together * cache_one);
  const double peak =
      question.cluster.device.peak(question.weight_bytes <= 1 ? Precision::fp8 : Precision::bf16) * t * k_matrix_share;
  out.prefill_per_s = peak / (2 * count.active);
  out.tokens_per_s_all = std::min(reading, out.prefill_per_s);
  return out;
}

int least_tp(const ServeQuestion& question) {
  ServeQuestion one = question;
  for (int t = 1; t <= question.cluster.fast_domain; t *= 2) {
    one.tp = t;
    if (question.model.heads % t == 0 && plan_serve(one).fits) return t;
  }
  return 0;
}

}  // namespace gridctl::plan
