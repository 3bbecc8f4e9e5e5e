// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.hpp"

#include "plan/eager.hpp"

namespace gridctl::plan {

namespace {
constexpr double k_bucket = 5e8 * 2;  // DeepSpeed's reduction bucket, elements of 2 bytes
constexpr double k_live = 1e9 * 2;    // parameters that its stage 3 keeps gathered
constexpr double k_nf4 = 0.53;        // bytes of a 4-bit weight with its scales
constexpr double k_nccl = 1e9;        // bytes: a communicator of torch

// Returns the bytes of each output value while the loss is computed: logits, their copy in fp32, probabilities and
// gradient. torchtune computes them in eight pieces; the trainers around FSDP fuse the loss and write the gradient in
// place.
double logit_bytes(const Training& training) {
  if (eager(training)) return 12;
  if (training.framework == Framework::torchtune) return 1.5;
  if (training.framework == Framework::fsdp) return 4;
  return training.precision == Precision::fp32 ? 12 : 10;
}

// Returns whether layers use PyTorch's plain operations, one kernel each: RMSNorm keeps its input in fp32, and the gate
// of an MLP is kept before and after its activation. Others compile or fuse both.
bool runs_plain_operations(Framework framework) {
  return framework == Framework::litgpt || framework == Framework::deepspeed || framework == Framework::ddp;
}

// Holds bytes per token and hidden unit of a layer that saves everything, in two parts: one that tensor parallelism
// divides alone, and one that only sequence parallelism divides.
struct PerToken {
  double divided = 0, whole = 0;
};
PerToken per_token(const Training& training) {
  const Model& m = training.model;
  if (eager(training)) return {eager_kept(training, usual_bytes(training)), 0};
  const double wide = training.precision == Precision::fp32 ? 2 : 1;
  const double h = m.hidden;
  const double heads = m.heads > 0 ? m.dim_of_head() * m.heads / h : 1;
  const double kv = m.heads > 0 ? heads * (m.kv_heads > 0 ? m.kv_heads : m.heads) / m.heads : 1;
  double ffn = m.ffn / h;
  if (m.mixture()) ffn = (m.experts_per_token + m.shared_experts) * (m.expert_ffn > 0 ? m.expert_ffn : m.ffn) / h;
  PerToken out;
  if (!m.gated_mlp && training.dropout) {
    // In Korthikanti, table 2, 8 of attention and 16 of an MLP of 4h are divided; inputs, norms and masks are not.
    out.divided = wide * (2 * heads + 4 * kv + 2 * heads + 4 * ffn);
    out.whole = wide * 8 + 2;
  } else {
    // Counts the inputs of the norms and of the linear layers; q before and after rotation, k, v, the output of
    // attention and its statistics; the MLP's wide values (three of a gated one: gate, up and their product; two of a
    // plain one). Frozen weights need no inputs: a LoRA layer keeps only the values that the nonlinear parts need and
    // the adapters' inputs. bitsandbytes' 4-bit layers keep their inputs nevertheless.
    const bool frozen = training.method == Method::lora ||
                        (training.method == Method::qlora && training.framework != Framework::litgpt);
    const bool fused_rotation = training.framework == Framework::megatron;
    const double rotated = m.gated_mlp && !fused_rotation ? 8 : 4;
    out.divided = wide * (rotated * heads + 4 * kv + ((m.gated_mlp ? 6 : 4) - (frozen ? 2 : 0)) * ffn);
    out.whole = wide * (frozen ? 6 : 8);
    if (m.gated_mlp && training.precision != Precision::fp32 && runs_plain_operations(training.framework)) {
      out.divided += 2 * ffn;
      out.whole += 4;
    }
    if (training.precision == Precision::fp8 || training.precision == Precision::fp4) {
      out.divided -= heads + ffn;  // inputs of linear layers are kept in one byte
      out.whole -= 2;
    }
  }
  return out;
}

double attention_scores(const Training& training, const Parallelism& parallelism) {
  if (training.flash_attention || parallelism.recompute == Recompute::selective) return 0;
  const double s = static_cast<double>(training.sequence) / parallelism.cp;
  const double bytes = (training.dropout ? 5 : 4) * (training.precision == Precision::fp32 ? 2 : 1);
  return bytes * training.model.heads * s * static_cast<double>(training.sequence) * parallelism.micro_batch / parallelism.tp;
}

double everything_of_a_layer(const Training& training, const Parallelism& parallelism) {
  const double sbh = static_cast<double>(training.sequence) / parallelism.cp * parallelism.micro_batch * training.model.hidden;
  const PerToken bytes = per_token(training);
  const double whole = parallelism.sequence_parallel ? bytes.whole / parallelism.tp : bytes.whole;
  return sbh * (whole + bytes.divided / parallelism.tp) + attention_scores(training, parallelism);
}
}  // namespace

MemoryConstants memory_constants(Framework framework) {
  switch (framework) {
    case Framework::megatron: return {4 * k_giga, 1.05};
    case Framework::megatron_deepspeed: return {9 * k_giga, 1.05};
    case Framework::deepspeed: return {4 * k_giga, 1.05};
    case Framework::fsdp:
    case Framework::transformers: return {2 * k_giga, 1.05};
    case Framework::fsdp2: return {3 * k_giga, 1.15};
    case Framework::torchtune: return {0.3 * k_giga, 1.02};
    case Framework::litgpt: return {0.2 * k_giga, 1.0};
    case Framework::ddp: return {0.5 * k_giga, 1.03};
  }
  return {};
}

double layer_activations(const Training& training, const Parallelism& parallelism) {
  const double sbh = static_cast<double>(training.sequence) / parallelism.cp * parallelism.micro_batch * training.model.hidden;
  const double wide = training.precision == Precision::fp32 ? 2 : 1;
  if (parallelism.recompute == Recompute::full)
    return (autocast(training, usual_bytes(training)) ? 4 : 2 * wide) * sbh / (parallelism.sequence_parallel ? parallelism.tp : 1);
  // With flash attention, the scores are never kept. "selective" then means that every second linear layer is computed
  // again (torchtitan): the layer's input, the output of attention, its projection and one wide value stay.
  const bool megatron =
      training.framework == Framework::megatron || training.framework == Framework::megatron_deepspeed;
  if (parallelism.recompute == Recompute::selective && training.flash_attention && !megatron) {
    const Model& m = training.model;
    const double heads = m.heads > 0 ? static_cast<double>(m.dim_of_head()) * m.heads / m.hidden : 1;
    const double kv = m.heads > 0 ? heads * std::max(m.kv_heads, 1) / m.heads : 1;
    return wide * sbh * (4 + 2 * heads + 2 * kv + 2.0 * m.ffn / m.hidden) / parallelism.tp;
  }
  return everything_of_a_layer(training, parallelism);
}

double lora_parameters(const Model& model, int rank) {
  const double h = model.hidden, f = model.ffn, d = model.dim_of_head();
  const double q = model.heads * d, kv = (model.kv_heads > 0 ? model.kv_heads : model.heads) * d;
  const double attention = (h + q) + 2 * (h + kv) + (q + h);
  const double mlp = (model.gated_mlp ? 3 : 2) * (h + f);
  return model.layers * rank * (attention + mlp);
}

MemoryFacts memory_facts(const Training& training) {
  MemoryFacts out;
  const Model& model = training.model;
  out.bytes = usual_bytes(training);
  out.count = count_params(model);
  out.constants = memory_constants(training.framework);
  if (model.known_shape()) {
    out.dense = layer_params(model, false);
    out.mixed = layer_params(model, true);
    if (model.mixture()) out.mixture_share = static_cast<double>(model.layers - model.dense_layers) / model.layers;
  }
  if (training.method == Method::full) return out;
  out.trainable = training.trainable > 0 ? training.trainable : lora_parameters(model, k_lora_rank);
  const double frozen = training.precision == Precision::fp32 ? 4 : 2;
  // Embeddings and the head stay unchanged; the linear layers become 4-bit.
  const double linear = out.count.total > 0 ? out.count.layers / out.count.total : 1;
  out.base_bytes = training.method == Method::qlora ? linear * k_nf4 + (1 - linear) * frozen : frozen;
  return out;
}

namespace {
// Returns the parameters of the largest stage, on one GPU before any sharding over replicas.
double most_params(const Training& training, const MemoryFacts& facts, const Parallelism& parallelism) {
  const Model& model = training.model;
  if (!model.known_shape()) return facts.count.total / (parallelism.tp * parallelism.pp);
  const double scale = model.params_said > 0
                           ? facts.count.layers / (model.layers * ((1 - facts.mixture_share) * facts.dense.all() +
                                                                   facts.mixture_share * facts.mixed.all()))
                           : 1;
  const double layer =
      ((1 - facts.mixture_share) * facts.dense.dense() + facts.mixture_share * facts.mixed.dense()) +
      ((1 - facts.mixture_share) * facts.dense.experts + facts.mixture_share * facts.mixed.experts / parallelism.ep);
  if (parallelism.pp == 1) return (model.layers * layer * scale + facts.count.embedding + facts.count.head) / parallelism.tp;
  const Stages stages = stages_of(model.layers, parallelism.pp);
  const double head = facts.count.head > 0 ? facts.count.head : facts.count.embedding;  // tied: a copy at both ends
  return std::max({stages.first * layer * scale + facts.count.embedding, stages.last * layer * scale + head,
                   stages.most * layer * scale}) /
         parallelism.tp;
}

void keep_states(const Training& training, const MemoryFacts& facts, const Parallelism& parallelism, Memory& out) {
  const double shard = static_cast<double>(parallelism.dp) * parallelism.cp;
  const double over = parallelism.zero == 3 ? shard : 1;
  if (training.method != Method::full) {
    const double trained = facts.trainable / (parallelism.tp * parallelism.pp);
    out.weights = out.params * facts.base_bytes / over + trained * 4 / over;
    out.grads = trained * 4 / (parallelism.zero >= 2 ? shard : 1);
    out.optimizer = trained * 8 / (parallelism.zero >= 1 ? shard : 1);
  } else {
    out.weights = out.params * (facts.bytes.weight / over + facts.bytes.extra);
    out.grads = out.params * facts.bytes.grad / (parallelism.zero >= 2 ? shard : 1);
    out.optimizer = out.params * facts.bytes.optimizer / (parallelism.zero >= 1 ? shard : 1);
  }
  if (parallelism.offload == Offload::none || parallelism.offload == Offload::activations) return;
  out.offloaded = out.optimizer;
  out.optimizer = 0;
  if (parallelism.offload == Offload::all && parallelism.zero == 3) {
    out.offloaded += out.weights + out.grads;
    out.weights = out.grads = 0;
  }
}

// Returns the parameters of embedding and head that are gathered beside two layers. In most frameworks they belong to
// the root unit, which stays gathered from forward to backward; torchtune makes them separate units.
double ends_gathered(const Training& training, const MemoryFacts& facts, const Parallelism& parallelism, double layer) {
  const double larger = std::max(facts.count.embedding, facts.count.head) / parallelism.tp;
  if (training.framework == Framework::torchtune) return std::max(larger - layer, 0.0);
  return parallelism.pp > 1 ? larger : (facts.count.embedding + facts.count.head) / parallelism.tp;
}

void keep_buffers(const Training& training, const MemoryFacts& facts, const Parallelism& parallelism, Memory& out) {
  const double half = training.precision == Precision::fp32 ? 4 : 2;
  const bool several = parallelism.dp * parallelism.cp > 1;
  if (parallelism.zero == 3 && (several || parallelism.offload == Offload::all) && training.model.known_shape()) {
    // Counts the unit in use and the next one, and the gradients that are being reduced.
    const double layer = facts.count.layers / training.model.layers / parallelism.tp;
    const double gathered = training.method == Method::qlora ? k_nf4 : half;
    if (training.framework == Framework::deepspeed) {
      // Counts one module at a time, the largest being the MLP's matrix, the prefetched one, and the reduction bucket.
      const double module = static_cast<double>(training.model.hidden) * training.model.ffn / parallelism.tp;
      out.buffers = half * module + k_bucket + std::min(k_live, half * out.params);
      return;
    }
    const double grads = training.method == Method::full ? half * layer : 0;
    out.buffers = gathered * 2 * layer + grads + half * ends_gathered(training, facts, parallelism, layer);
    // FSDP2 copies a unit's gradients into the message that reduces them.
    if (training.framework == Framework::fsdp2) out.buffers += 2 * grads;  // in fp32
    else if (training.framework == Framework::torchtune) out.buffers += grads;
  } else if (parallelism.zero >= 1 && several) {
    out.buffers = training.framework == Framework::deepspeed ? 2 * k_bucket : std::min(k_bucket, half * out.params);
  }
  // An optimizer that runs inside backward keeps one gradient at a time; the gradient of a tied embedding has to wait
  // for its other end.
  if (training.method == Method::full && facts.bytes.grad == 0)
    out.buffers += half * std::max(facts.count.embedding, facts.count.head) * (facts.count.head > 0 ? 1 : 2) / parallelism.tp;
  if (training.framework == Framework::ddp && parallelism.zero == 0 && several)
    // Counts the buckets into which gradients are copied, and NCCL's own buffers.
    out.buffers = (training.method == Method::full ? out.params * facts.bytes.grad : facts.trainable * 4) + k_nccl;
  if (training.framework == Framework::fsdp2 && parallelism.pp > 1 && parallelism.zero >= 1)
    out.buffers += out.params * (half + 4);  // FSDP2 inside a pipeline keeps parameters and gradients gathered
}
}  // namespace

Memory memory_of(const Training& training, const MemoryFacts& facts, const Parallelism& parallelism) {
  Memory out;
  out.constants = facts.constants;
  out.params = most_params(training, facts, parallelism);
  keep_states(training, facts, parallelism, out);
  keep_buffers(training, facts, parallelism, out);
  // DeepSpeed copies the gradients of its part into fp32 for the step, when the activations are gone.
  if (training.framework == Framework::megatron_deepspeed || training.framework == Framework::deepspeed)
    out.step_copy = training.method != Method::full || training.precision == Precision::fp32
                        ? 0
                        : 4 * out.params / (parallelism.zero >= 1 ? static_cast<double>(parallelism.dp) * parallelism.cp : 1);
  const Model& model = training.model;
  if (!model.known_shape()) return out;
  if (autocast(training, facts.bytes))
    out.copies = 2 * (facts.count.layers + static_cast<double>(model.vocab) * model.hidden) / parallelism.tp;
  out.late_grads = eager(training) && parallelism.zero < 2 && parallelism.pp == 1 && micro_batches(training, parallelism) == 1;
  const Stages stages = stages_of(model.layers, parallelism.pp);
  const double in_flight = static_cast<double>(std::min<std::int64_t>(parallelism.pp, micro_batches(training, parallelism)));
  const double interleaved =
      parallelism.virtual_stages > 1 ? 1 + (parallelism.pp - 1.0) / (parallelism.pp * parallelism.virtual_stages) : 1;
  const double each = layer_activations(training, parallelism);
  const double held = stages.first * in_flight * interleaved;
  out.activations = each * held;
  if (parallelism.offload == Offload::activations) {
    // The values of one layer are transferred while those of the next one are computed.
    out.activations = each * std::min(held, 2.0);
    out.offloaded += each * held - out.activations;
  }
  Parallelism whole = parallelism;
  whole.recompute = Recompute::none;
  out.working = parallelism.recompute == Recompute::full ? everything_of_a_layer(training, whole) : 0;
  const double tokens = static_cast<double>(training.sequence) / parallelism.cp * parallelism.micro_batch;
  const double logits = logit_bytes(training) * tokens * static_cast<double>(model.vocab) / parallelism.tp;
  if (parallelism.pp == 1) {
    out.logits = logits;
    return out;
  }
  // With 1F1B, the last stage holds one micro-batch and the logits, the first stage all micro-batches in flight.
  const double at_last = each * stages.last * interleaved + std::max(out.working, logits);
  if (at_last > out.activations + out.working) {
    out.activations = each * stages.last * interleaved;
    out.logits = logits;
  }
  return out;
}

Memory memory_of(const Training& training, const Parallelism& parallelism) {
  return memory_of(training, memory_facts(training), parallelism);
}

}  // namespace gridctl::plan
