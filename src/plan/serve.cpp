// SPDX-License-Identifier: Apache-2.0
#include "plan/serve.hpp"

#include <algorithm>
#include <cmath>

namespace gridctl::plan {

namespace {
constexpr double k_read_share = 0.8;    // of the memory's rate that decoding reaches
constexpr double k_matrix_share = 0.5;  // of the peak that prompts reach
}  // namespace

double weights_of(const ServeQuestion& question) {
  const ParamCount count = count_params(question.model);
  const double ends = count.embedding + count.head;
  return (count.total - ends) * question.weight_bytes + ends * std::max(question.weight_bytes, 2.0);
}

ServePlan plan_serve(const ServeQuestion& question) {
  ServePlan out;
  const Model& m = question.model;
  const ParamCount count = count_params(m);
  const double t = question.tp;
  out.weights = weights_of(question) / t;
  // Latent attention caches one compressed vector; ordinary attention a key and a value for each key-value head.
  const double kv = std::max(m.kv_heads, 1);
  const double values = m.kv_rank > 0 ? m.kv_rank + m.rope_dim : 2 * kv * m.dim_of_head() / std::min(t, kv);
  out.cache_per_token = m.layers * values * question.cache_bytes;
  out.cache = std::max(0.0, question.cluster.device.memory * question.share - k_server_bytes - out.weights);
  out.sequences = std::floor(out.cache / (out.cache_per_token * question.context));
  out.fits = out.sequences >= 1;
  const double rate = question.cluster.device.memory_rate * k_read_share;
  // A token reads the head and the layers that it passes through, but only one row of the embedding.
  const double head = static_cast<double>(m.vocab) * m.hidden;
  const double active = ((count.active - head) * question.weight_bytes + head * std::max(question.weight_bytes, 2.0)) / t;
  const double cache_one = out.cache_per_token * question.context;
  out.tokens_per_s_one = rate / (active + cache_one);
  // A full batch reads every expert, and every conversation's cache; arithmetic can also limit it.
  const double together = std::max(out.sequences, 1.0);
  const double reading =
      together * rate / ((m.mixture() && together > 8 ? out.weights : active) + together * cache_one);
  const double peak =
      question.cluster.device.peak(question.weight_bytes <= 1 ? Precision::fp8 : Precision::bf16) * t * k_matrix_share;
  out.prefill_per_s = peak / (2 * count.active);
  out.tokens_per_s_all = std::min(reading, out.prefill_per_s);
  return out;
}

namespace {
// Returns the degree that fits and has the most of `worth`.
template <class Worth>
int fitting_tp(ServeQuestion question, Worth worth) {
  int best = 0;
  double most = 0;
  for (int t = 1; t <= question.cluster.fast_domain; t *= 2) {
    question.tp = t;
    if (question.model.heads % t != 0) continue;
    const ServePlan plan = plan_serve(question);
    if (!plan.fits || worth(plan, t) <= most) continue;
    most = worth(plan, t);
    best = t;
  }
  return best;
}
}  // namespace

int best_tp(const ServeQuestion& question) {
  return fitting_tp(question, [](const ServePlan& plan, int t) { return plan.tokens_per_s_all / t; });
}

int least_tp(const ServeQuestion& question) {
  return fitting_tp(question, [](const ServePlan&, int t) { return 1.0 / t; });
}

}  // namespace gridctl::plan
