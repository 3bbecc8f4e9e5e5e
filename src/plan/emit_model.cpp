// SPDX-License-Identifier: Apache-2.0
// Writes config.json of transformers for a shape: Llama's for gated MLPs, GPT-2's for plain ones, and those of
// mixtures.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/emit.hpp"

namespace gridctl::plan {

std::string model_config(const Model& m) {
  using OrderedJson = nlohmann::ordered_json;
  if (!m.gated_mlp) {
    const OrderedJson gpt{{"model_type", "gpt2"},  {"n_layer", m.layers},
                          {"n_embd", m.hidden},    {"n_inner", m.ffn},
                          {"n_head", m.heads},     {"vocab_size", m.vocab},
                          {"n_positions", std::max<std::int64_t>({m.positions, m.max_sequence, 1024})},
                          {"tie_word_embeddings", m.tied_embeddings}};
    return gpt.dump(2) + "\n";
  }
  const bool latent = m.kv_rank > 0;
  OrderedJson out{{"model_type", !m.mixture() ? "llama" : latent ? "deepseek_v3" : "mixtral"},
                  {"num_hidden_layers", m.layers},
                  {"hidden_size", m.hidden},
                  {"intermediate_size", m.ffn},
                  {"num_attention_heads", m.heads},
                  {"num_key_value_heads", latent || m.kv_heads <= 0 ? m.heads : m.kv_heads},
                  {"vocab_size", m.vocab},
                  {"max_position_embeddings", std::max<std::int64_t>(m.max_sequence, 8192)},
                  {"tie_word_embeddings", m.tied_embeddings}};
  if (m.head_dim > 0 && !latent) out["head_dim"] = m.head_dim;
  if (!m.mixture()) return out.dump(2) + "\n";
  const int expert = m.expert_ffn > 0 ? m.expert_ffn : m.ffn;
  out["num_experts_per_tok"] = m.experts_per_token;
  if (!latent) {
    out["num_local_experts"] = m.experts;
    out["intermediate_size"] = expert;
    return out.dump(2) + "\n";
  }
  out.update({{"n_routed_experts", m.experts},
              {"n_shared_experts", m.shared_experts},
              {"moe_intermediate_size", expert},
              {"first_k_dense_replace", m.dense_layers},
              {"kv_lora_rank", m.kv_rank},
              {"qk_rope_head_dim", m.rope_dim},
              {"qk_nope_head_dim", m.dim_of_head()},
              {"v_head_dim", m.dim_of_head()}});
  out["q_lora_rank"] = m.q_rank > 0 ? OrderedJson(m.q_rank) : OrderedJson(nullptr);
  return out.dump(2) + "\n";
}

}  // namespace gridctl::plan
