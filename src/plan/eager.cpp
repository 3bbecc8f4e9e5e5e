// SPDX-License-Identifier: Apache-2.0
#include "plan/eager.hpp"

#include <algorithm>

namespace gridctl::plan {

namespace {
// Holds bytes per token and hidden unit: a constant, and shares of the widths of queries, of keys or values, and of the
// MLP.
struct Bytes {
  double whole, heads, kv, ffn;
  [[nodiscard]] double of(const Widths& w) const { return whole + heads * w.heads + kv * w.kv + ffn * w.ffn; }
};
struct Layer {
  Bytes kept, moved;
};
// Counts RMSNorm in fp32, rotation of queries and keys, and a gated MLP.
constexpr Layer k_llama_bf16{{16, 6, 4, 8}, {84, 24, 20, 10}};
constexpr Layer k_llama_autocast{{26, 6, 4, 8}, {106, 38, 34, 10}};
constexpr Layer k_llama_fp32{{16, 12, 8, 16}, {80, 48, 40, 20}};
// Counts LayerNorm in one kernel. GPT-2's GELU is eight kernels; its power runs in fp32 under autocast, and so does
// everything after it.
constexpr Layer k_gpt_bf16{{8, 10, 0, 10}, {26, 0, 0, 36}};
constexpr Layer k_gpt_autocast{{12, 10, 0, 16}, {52, 0, 0, 76}};
constexpr Layer k_gpt_fp32{{16, 20, 0, 20}, {52, 0, 0, 72}};
constexpr double k_fused_kept = 4, k_fused_moved = 4;  // of the MLP, where GELU is one kernel (nanoGPT)

Layer layer_of(const Training& training, const StateBytes& bytes) {
  const bool gated = training.model.gated_mlp;
  if (training.precision == Precision::fp32) return gated ? k_llama_fp32 : k_gpt_fp32;
  if (autocast(training, bytes)) return gated ? k_llama_autocast : k_gpt_autocast;
  return gated ? k_llama_bf16 : k_gpt_bf16;
}
}  // namespace

Widths widths_of(const Model& m) {
  Widths out;
  if (m.heads > 0) {
    out.heads = static_cast<double>(m.dim_of_head()) * m.heads / m.hidden;
    out.kv = out.heads * (m.kv_heads > 0 ? m.kv_heads : m.heads) / m.heads;
  }
  const double ffn = m.mixture() ? (m.experts_per_token + m.shared_experts) * (m.expert_ffn > 0 ? m.expert_ffn : m.ffn) : m.ffn;
  out.ffn = ffn / std::max(m.hidden, 1);
  return out;
}

bool eager(const Training& training) {
  if (training.framework == Framework::ddp || training.framework == Framework::transformers) return true;
  if (training.framework == Framework::fsdp) return training.method != Method::full;
  return training.framework == Framework::deepspeed && (training.flash_attention || training.model.gated_mlp);
}

bool by_peft(const Training& training) { return training.method != Method::full && eager(training); }

bool autocast(const Training& training, const StateBytes& bytes) {
  return eager(training) && training.precision != Precision::fp32 && training.method == Method::full && bytes.weight >= 4;
}

double eager_kept(const Training& training, const StateBytes& bytes) {
  const Widths w = widths_of(training.model);
  Layer layer = layer_of(training, bytes);
  if (by_peft(training)) {
    // A frozen matrix needs no input, but each adapter keeps its own copy in fp32.
    const bool gated = training.model.gated_mlp;
    const double inputs = (gated ? 5 : 2) + w.heads + w.ffn;
    return (gated ? 8 + 4 * w.heads + 4 * w.kv + 6 * w.ffn : 4 + 10 * w.heads + 8 * w.ffn) + 4 * inputs;
  }
  if (training.fused_mlp) layer.kept.ffn = k_fused_kept * (training.precision == Precision::fp32 ? 2 : 1);
  return layer.kept.of(w);
}

double eager_moved(const Training& training, const StateBytes& bytes) {
  const Widths w = widths_of(training.model);
  Layer layer = layer_of(training, bytes);
  if (training.fused_mlp) layer.moved.ffn = k_fused_moved * (training.precision == Precision::fp32 ? 2 : 1);
  const double moved = layer.moved.of(w);
  if (!by_peft(training)) return moved;
  // Each adapter casts its input (6), scales, casts and adds its output (24), and reads both in thin matrices of fp32.
  const bool gated = training.model.gated_mlp;
  const double in = (gated ? 5 : 2) + w.heads + w.ffn;
  const double out = w.heads + 2 * w.kv + 2 + (gated ? 2 : 1) * w.ffn;
  return moved + 6 * in + 24 * out + 8 * (in + out);
}

}  // namespace gridctl::plan
