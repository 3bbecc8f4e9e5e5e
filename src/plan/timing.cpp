// SPDX-License-Identifier: Apache-2.0
#include "plan/timing.hpp"

#include <algorithm>
#include <cmath>

#include "plan/eager.hpp"

namespace gridctl::plan {

namespace {
constexpr double k_launch = 100e-6;                     // seconds
constexpr double k_hop_near = 2e-6, k_hop_far = 15e-6;  // seconds a message needs to the next rank
constexpr double k_ring = 0.75;                         // share of a link that collectives get (theory C8)
// Hold the parts of a step's computing behind which data-parallel traffic can hide: the backward pass of the last
// micro-batch for gradients, all of it for parameters that are gathered again each time.
constexpr double k_hide_gradients = 0.4, k_hide_gathers = 0.85;
// DeepSpeed's ZeRO-3 gathers one module at a time: messages that do not fill the links, and little computing to hide
// them.
constexpr double k_small_messages = 0.22, k_hide_modules = 0.1;
constexpr double k_context_seen = 0.3;
constexpr double k_odd_vocabulary = 5.8;   // times slower: the output matrix has no aligned kernel (three runs of GPT-2)
constexpr double k_expert_matrices = 1.25;  // times slower: smaller matrices, and the fullest expert is waited for (judged, not measured)
constexpr double k_frozen_backward = 1.3;  // of a forward pass, where weights are frozen

double& at(Terms& terms, Term term) { return terms[static_cast<std::size_t>(term)]; }
double at(const Terms& terms, Term term) { return terms[static_cast<std::size_t>(term)]; }

double tokens_of(const Training& training, const Parallelism& parallelism) {
  return static_cast<double>(training.sequence) / parallelism.cp * parallelism.micro_batch;
}
// Counts forward once, backward twice, and forward again if everything is recomputed.
double passes_of(const Training& training, const Parallelism& parallelism) {
  const double backward = training.method == Method::full ? 2 : 1;  // no gradients of frozen weights
  return 1 + backward + (parallelism.recompute == Recompute::full ? 1 : 0);
}
// Returns the cost of a token's matrices, in parameters.
double matrix_params_of_layer(const Training& training, const MemoryFacts& facts) {
  const Model& m = training.model;
  if (!m.known_shape()) return facts.count.active;
  const double dense = facts.dense.attention + facts.dense.active_mlp;
  const double mixed = facts.mixed.attention + k_expert_matrices * facts.mixed.active_mlp + facts.mixed.router;
  return dense * (1 - facts.mixture_share) + mixed * facts.mixture_share;
}
double width_of_heads(const Model& m) {
  return m.heads > 0 ? static_cast<double>(m.dim_of_head()) * m.heads : m.hidden;
}
}  // namespace

std::string_view text_of(Term term) {
  switch (term) {
    case Term::gemm: return "matrices";
    case Term::attention: return "attention";
    case Term::scores: return "attention scores";
    case Term::elementwise: return "elementwise";
    case Term::tensor: return "tensor parallel";
    case Term::launches: return "launches";
    case Term::logits: return "logits";
    case Term::data: return "data parallel";
    case Term::pipeline: return "pipeline";
    case Term::optimizer: return "optimizer";
    case Term::misaligned: return "misaligned heads";
    case Term::count: break;
  }
  return "";
}

double dot(const Terms& a, const Terms& b) {
  double sum = 0;
  for (std::size_t i = 0; i < k_terms; ++i) sum += a[i] * b[i];
  return sum;
}

Flops flops_of(const Training& training, const ParamCount& count, Recompute recompute) {
  const Model& m = training.model;
  const double tokens = static_cast<double>(training.batch) * static_cast<double>(training.sequence);
  const double attention =
      m.known_shape() ? 12.0 * m.layers * width_of_heads(m) * static_cast<double>(training.sequence) : 0;
  Flops out;
  // Frozen weights have no gradients: only forward, and backward to their inputs.
  const double each = training.method == Method::full ? 6 : 4;
  out.model = tokens * (each * count.active + attention);
  out.executed = out.model;
  if (recompute == Recompute::full)
    out.executed += tokens * (2 * (count.active - static_cast<double>(m.vocab) * m.hidden) + attention / 3);
  if (recompute == Recompute::selective) out.executed += tokens * attention / 3;
  return out;
}

TimingFacts timing_facts(const Training& training, const Cluster& cluster) {
  TimingFacts out;
  out.memory = memory_facts(training);
  out.plain = flops_of(training, out.memory.count, Recompute::none);
  out.selective = flops_of(training, out.memory.count, Recompute::selective);
  out.full = flops_of(training, out.memory.count, Recompute::full);
  out.coefficients = shipped_coefficients(cluster.device.gpu_class, training);
  return out;
}

Traffic traffic_of(const Training& training, const TimingFacts& facts, const Parallelism& parallelism) {
  Traffic out;
  const double half = training.precision == Precision::fp32 ? 4 : 2;
  const double sbh = tokens_of(training, parallelism) * std::max(training.model.hidden, 1);
  const double t = parallelism.tp;
  // Counts four all-reduces (two forward, two backward), and half as many again if the forward pass is repeated.
  const double times = parallelism.recompute == Recompute::full ? 1.5 : 1;
  out.tensor = 4 * 2 * (t - 1) / t * sbh * half * times;
  if (parallelism.cp > 1) {  // keys and values go round the ring, forward and backward
    const Model& m = training.model;
    const double kv = m.heads > 0 ? 2.0 * std::max(m.kv_heads, 1) * m.dim_of_head() : 2.0 * m.hidden;
    out.context = 3 * half * tokens_of(training, parallelism) * (parallelism.cp - 1) * kv / t;
  }
  // Tokens go to their experts and come back, forward and backward.
  if (parallelism.ep > 1) out.experts = 4 * half * sbh / t * training.model.experts_per_token * (parallelism.ep - 1) / parallelism.ep;
  out.pipeline = parallelism.pp > 1 ? 2 * half * sbh / t : 0;
  const double share = facts.memory.count.total / (t * parallelism.pp);
  const double trained = training.method == Method::full ? share : facts.memory.trainable / (t * parallelism.pp);
  const double d = static_cast<double>(parallelism.dp) * parallelism.cp;
  const double ring = (d - 1) / d;
  const auto steps = static_cast<double>(micro_batches(training, parallelism));
  if (parallelism.zero == 3 && parallelism.pp > 1 && shards_in_pipelines(training.framework)) {
    out.data = ring * (half * share + 4 * trained);
    out.data_message = half * share / std::max(training.model.layers, 1);
  } else if (parallelism.zero == 3) {
    out.data = ring * half * steps * (2 * share + trained);
    out.data_message = training.model.layers > 0 ? half * share / training.model.layers : half * share;
  } else {
    // Counts the gradients in the width in which they are kept, and the parameters back in half precision; both in a
    // ring. A rank that keeps only its share of the gradients passes the others on after each micro-batch.
    const double grads = facts.memory.bytes.grad > 0 ? std::min(facts.memory.bytes.grad, 4.0) : half;
    const double passed = parallelism.zero == 2 && parallelism.pp == 1 ? steps : 1;
    out.data = ring * trained * (grads * passed + (parallelism.zero == 0 ? grads : half));
    out.data_message = std::min(out.data / 2, 25e6 * 4);
  }
  return out;
}

namespace {
// Returns the bytes that a layer moves for each token and hidden unit, in all passes together.
double moved_of_layer(const Training& training, const TimingFacts& facts, const Parallelism& parallelism, bool unfused) {
  const double again = parallelism.recompute == Recompute::full ? 1 : 0, t = parallelism.tp;
  // Each token is gathered for each of its experts and scattered back: two reads and two writes, each way.
  const double permuted = facts.memory.mixture_share * training.model.experts_per_token * 16 / t;
  if (unfused) {
    const double backward = training.method == Method::full ? 2 : k_frozen_backward;
    return (1 + backward + again) * (eager_moved(training, facts.memory.bytes) / t + permuted);
  }
  // Only sequence parallelism divides norms and residuals, a third of the bytes (Korthikanti, table 4).
  const double wide = training.precision == Precision::fp32 ? 2 : 1;
  const double dense = 20 * wide * (1.0 / 3 / (parallelism.sequence_parallel ? t : 1) + 2.0 / 3 / t);
  return passes_of(training, parallelism) * (dense + permuted);
}

// Adds the seconds of one micro-batch in the most loaded stage, at full rates.
void add_computing(const Training& training, const TimingFacts& facts, const Cluster& cluster, const Parallelism& parallelism,
                   double slots, Terms& out) {
  const Model& m = training.model;
  const double tokens = tokens_of(training, parallelism), t = parallelism.tp;
  const double passes = passes_of(training, parallelism);
  const double layers = m.known_shape() ? static_cast<double>(m.layers) / parallelism.pp : 1.0 / parallelism.pp;
  const double peak = cluster.device.peak(training.precision);
  const double peak_attention =
      cluster.device.peak(training.precision == Precision::fp32 ? Precision::fp32 : Precision::bf16);
  const double width = width_of_heads(m);
  const double wide = training.precision == Precision::fp32 ? 2 : 1;
  const double sequence = static_cast<double>(training.sequence);
  const double count = slots * layers;
  const bool unfused = eager(training) && cluster.device.gpu_class != GpuClass::cpu;
  const double loss_moved = unfused ? k_loss_moved * static_cast<double>(m.vocab) : 0;
  at(out, Term::gemm) = count * passes * 2 * matrix_params_of_layer(training, facts.memory) * tokens / t / peak;
  const double attention_passes = 3 + (parallelism.recompute == Recompute::none ? 0 : 1);
  // Flash attention computes only the causal half.
  if (training.flash_attention)
    at(out, Term::attention) = count * attention_passes * 2 * sequence * width * tokens / t / peak_attention;
  else {
    const double score_bytes = 5 * wide * m.heads * sequence * tokens / t;
    at(out, Term::scores) = count * attention_passes * score_bytes / cluster.device.memory_rate;
  }
  at(out, Term::elementwise) = (count * m.hidden * moved_of_layer(training, facts, parallelism, unfused) + slots * loss_moved) *
                               tokens / cluster.device.memory_rate;
  at(out, Term::launches) = count * k_launch * (parallelism.recompute == Recompute::full ? 4.0 / 3 : 1);
  if (m.heads > 0 && m.dim_of_head() % 8 != 0)
    at(out, Term::misaligned) = count * attention_passes * 4 * sequence * width * tokens / t / peak_attention;
  const double head = static_cast<double>(m.vocab) * m.hidden * (unfused && m.vocab % 8 != 0 ? k_odd_vocabulary : 1);
  const bool frozen = eager(training) && training.method != Method::full;
  at(out, Term::logits) = slots * (frozen ? 4 : 6) * head * tokens / t / peak_attention;
}

// A ring of d ranks passes each message on d times. ZeRO-3 gathers layer by layer.
double latency_of(const Training& training, const Parallelism& parallelism, bool inside) {
  const double d = static_cast<double>(parallelism.dp) * parallelism.cp;
  if (d <= 1) return 0;
  const double hop = inside ? k_hop_near : k_hop_far;
  const double layers = std::max(training.model.layers, 1) / static_cast<double>(parallelism.pp);
  if (parallelism.zero < 3) return 2 * d * hop * std::max(1.0, layers / 4);
  return 3 * layers * d * hop * static_cast<double>(micro_batches(training, parallelism));
}
}  // namespace

Terms terms_of(const Training& training, const TimingFacts& facts, const Cluster& cluster, const Parallelism& parallelism) {
  Terms out{};
  const double steps = static_cast<double>(micro_batches(training, parallelism));
  const double slots = steps + (parallelism.pp - 1.0) / parallelism.virtual_stages;
  add_computing(training, facts, cluster, parallelism, slots, out);
  const Traffic traffic = traffic_of(training, facts, parallelism);
  const double layers = std::max(training.model.layers, 1);
  // A tensor parallel group lies in one domain of fast links if it fits, a context parallel one around it. Data in a
  // context ring is needed one attention later, so that most of the transfer is hidden.
  const double near = cluster.node_link * k_ring, far = cluster.inter_link * k_ring;
  const double context_link = parallelism.tp * parallelism.cp > cluster.fast_domain ? far : near;
  at(out, Term::tensor) = slots * layers / parallelism.pp *
                          (traffic.tensor / (parallelism.tp > cluster.fast_domain ? far : near) +
                           k_context_seen * traffic.context / context_link);
  if (parallelism.ep > 1)
    at(out, Term::tensor) +=
        slots * layers / parallelism.pp * traffic.experts / (parallelism.tp * parallelism.ep > cluster.fast_domain ? far : near);
  // `together` ranks of a data-parallel group lie in one domain. A ring enters a domain once, through the cards of all
  // its ranks in it, and passes each rank inside.
  const double together =
      std::clamp(cluster.fast_domain / static_cast<double>(parallelism.tp), 1.0, static_cast<double>(parallelism.dp) * parallelism.cp);
  const bool inside = parallelism.gpus() <= cluster.fast_domain;
  // Megatron of the time before flash attention had no ZeRO-3 of its own: such runs are DeepSpeed's.
  const bool by_module = parallelism.zero == 3 && (training.framework == Framework::deepspeed ||
                                              (training.framework == Framework::megatron && !training.flash_attention &&
                                               !training.model.gated_mlp));
  const double data_link = (inside ? near : std::min(near, together * far)) * (by_module ? k_small_messages : 1);
  if (parallelism.pp > 1)
    at(out, Term::pipeline) =
        slots * parallelism.virtual_stages * traffic.pipeline / (parallelism.gpus() <= cluster.fast_domain ? near : far);
  const double data = traffic.data / data_link + latency_of(training, parallelism, inside);
  const double computing = dot(out, facts.coefficients);
  // Takes smoothly the larger of the two: neither hides perfectly behind the other near the point where they are equal.
  const double room =
      computing * (by_module          ? k_hide_modules
                   : parallelism.zero == 3 ? k_hide_gathers
                   : parallelism.zero == 2 ? k_hide_gradients
                                      : k_hide_gradients / (parallelism.zero == 0 ? steps : std::sqrt(steps)));
  const double both = std::sqrt(std::sqrt(data * data * data * data + room * room * room * room));
  at(out, Term::data) = std::max(both - room, 0.0) + 0.02 * data;
  const double shard = parallelism.zero >= 1 ? static_cast<double>(parallelism.dp) * parallelism.cp : 1;
  const double own = (training.method == Method::full ? facts.memory.count.total : facts.memory.trainable) /
                     (parallelism.tp * parallelism.pp) / shard;
  const bool on_host = parallelism.offload == Offload::optimizer || parallelism.offload == Offload::all;
  const double rate = on_host ? cluster.host_link : cluster.device.memory_rate;
  at(out, Term::optimizer) = own * 2 * (facts.memory.bytes.optimizer + facts.memory.bytes.grad) / rate;
  if (parallelism.offload == Offload::all) {
    // Each micro-batch fetches this GPU's share of the parameters twice, and sends gradients back; computing hides some
    // of that.
    const double half = training.precision == Precision::fp32 ? 4 : 2;
    const double share = facts.memory.count.total / (parallelism.tp * parallelism.pp) / shard;
    const double streamed = steps * half * share * (training.method == Method::full ? 3 : 2) / cluster.host_link;
    at(out, Term::data) += std::max(streamed - k_hide_gradients * computing, 0.1 * streamed);
  }
  return out;
}

StepTime step_time(const Terms& terms, const Terms& coefficients, const Training& training, const Parallelism& parallelism) {
  StepTime out;
  for (std::size_t i = 0; i < k_terms; ++i) out.parts[i] = terms[i] * coefficients[i];
  for (const double part : out.parts) out.seconds += part;
  const double steps = static_cast<double>(micro_batches(training, parallelism));
  const double idle = (parallelism.pp - 1.0) / parallelism.virtual_stages;
  out.bubble = idle / (steps + idle);
  out.exposed = at(std::as_const(out.parts), Term::tensor) + at(std::as_const(out.parts), Term::data) +
                at(std::as_const(out.parts), Term::pipeline);
  return out;
}

}  // namespace gridctl::plan
