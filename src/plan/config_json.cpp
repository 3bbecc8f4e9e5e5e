// SPDX-License-Identifier: Apache-2.0
// Reads config.json of transformers: dense and mixture decoders, by the keys that their families use.
#include <algorithm>
#include <utility>
#include <nlohmann/json.hpp>

#include "base/json_fields.hpp"
#include "base/text.hpp"
#include "plan/model.hpp"

namespace gridctl::plan {

namespace {
using Json = nlohmann::json;
constexpr std::int64_t k_dimension_max = 10'000'000, k_vocab_max = 100'000'000;
constexpr std::size_t k_config_bytes_max = 1 << 20;

// Returns the value under the first of several names that exists.
std::int64_t first_of(const JsonFields& fields, std::initializer_list<std::string_view> names, std::int64_t usual) {
  for (const std::string_view name : names)
    if (const auto value = fields.whole(name, 0, k_vocab_max)) return *value;
  return usual;
}
std::int64_t needed(const JsonFields& fields, std::initializer_list<std::string_view> names) {
  const std::int64_t value = first_of(fields, names, -1);
  if (value < 1 || value > k_dimension_max) throw BadField("no " + std::string(*names.begin()));
  return value;
}

// Returns whether the two differ only by one additional, missing or different letter.
bool one_letter_off(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > 1 || a == b) return false;
  std::size_t at = 0;
  while (at < a.size() && a[at] == b[at]) ++at;
  return a.substr(a.size() == b.size() ? at + 1 : at) == b.substr(at + 1);
}

// Files have hundreds of keys that the planner does not need. But a misspelled key of the shape would silently count as
// its usual value.
void check_spelling(const Json& decoder) {
  static constexpr std::string_view k_keys[] = {
      "num_hidden_layers", "hidden_size",   "num_attention_heads", "vocab_size",           "intermediate_size",
      "num_local_experts", "num_experts",   "num_experts_per_tok", "num_key_value_heads",  "moe_intermediate_size",
      "n_routed_experts",  "n_shared_experts", "tie_word_embeddings", "max_position_embeddings"};
  for (const auto& [name, value] : decoder.items())
    for (const std::string_view key : k_keys)
      if (one_letter_off(name, key) && !decoder.contains(key))
        throw BadField("unknown key '" + sanitize(name, 60) + "'; did you mean '" + std::string(key) + "'?");
}

// Returns whether the type is a decoder with plain MLPs and LayerNorm; all others have gated MLPs.
bool plain_mlp(const std::string& type) {
  static const std::vector<std::string> types{"gpt2",        "gpt_neo",    "gpt_neox", "gptj", "opt",
                                              "bloom",       "mpt",        "falcon",   "phi",  "codegen",
                                              "gpt_bigcode", "starcoder2", "persimmon"};
  return std::ranges::find(types, type) != types.end();
}
bool no_decoder(const std::string& type) {
  static const std::vector<std::string> types{"bert",        "roberta", "t5",         "bart",    "vit",    "clip",
                                              "whisper",     "deberta", "deberta-v2", "electra", "albert", "distilbert",
                                              "xlm-roberta", "mamba",   "mamba2",     "rwkv"};
  return std::ranges::find(types, type) != types.end();
}

void read_mixture(const JsonFields& fields, Model& out) {
  out.experts = static_cast<int>(
      first_of(fields, {"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"}, 0));
  if (out.experts <= 1) {
    out.experts = 0;
    return;
  }
  out.experts_per_token =
      static_cast<int>(first_of(fields, {"num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk"}, 0));
  out.expert_ffn = static_cast<int>(first_of(fields, {"moe_intermediate_size", "expert_ffn_hidden_size"}, 0));
  out.shared_experts = static_cast<int>(first_of(fields, {"n_shared_experts", "num_shared_experts"}, 0));
  out.dense_layers = static_cast<int>(first_of(fields, {"first_k_dense_replace"}, 0));
}

Model model_of(const JsonFields& fields) {
  Model out;
  const std::string type = lower(fields.text("model_type"));
  if (type.empty()) throw BadField("no model_type");
  if (no_decoder(type)) throw BadField("model_type '" + type + "' is not a transformer decoder");
  out.name = type;
  out.layers = static_cast<int>(needed(fields, {"num_hidden_layers", "n_layer", "n_layers", "num_layers"}));
  out.hidden = static_cast<int>(needed(fields, {"hidden_size", "n_embd", "d_model"}));
  out.heads = static_cast<int>(needed(fields, {"num_attention_heads", "n_head", "n_heads"}));
  out.vocab = needed(fields, {"vocab_size"});
  const bool plain = plain_mlp(type);
  out.gated_mlp = !plain;
  out.biases = plain;
  out.ffn = static_cast<int>(
      first_of(fields, {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, plain ? 4LL * out.hidden : 0));
  if (type == "mpt") out.ffn = static_cast<int>(first_of(fields, {"expansion_ratio"}, 4)) * out.hidden;
  if (out.ffn == 0) throw BadField("no intermediate_size");
  out.kv_heads = static_cast<int>(first_of(fields, {"num_key_value_heads", "num_kv_heads", "n_head_kv"},
                                           fields.flag("multi_query") ? 1 : out.heads));
  out.head_dim = static_cast<int>(first_of(fields, {"head_dim", "v_head_dim"}, 0));
  out.max_sequence = first_of(fields, {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"}, 0);
  const bool tied_by_default = type == "gpt2" || type == "opt" || type == "bloom" || type == "mpt" ||
                               type.starts_with("gemma") || type == "falcon" || type == "gpt_neo" ||
                               type == "gpt_bigcode";
  out.tied_embeddings = fields.maybe_flag("tie_word_embeddings").value_or(tied_by_default);
  out.learned_positions = type == "gpt2" || type == "opt" || type == "gpt_neo" || type == "gpt_bigcode";
  out.positions = out.learned_positions ? out.max_sequence : 0;
  out.q_rank = static_cast<int>(first_of(fields, {"q_lora_rank"}, 0));
  out.kv_rank = static_cast<int>(first_of(fields, {"kv_lora_rank"}, 0));
  out.rope_dim = static_cast<int>(first_of(fields, {"qk_rope_head_dim"}, 0));
  read_mixture(fields, out);
  return out;
}
}  // namespace

Result<Model> read_config(std::string_view json) {
  if (json.size() > k_config_bytes_max) return make_error(Code::usage, "larger than 1 MiB: not a config.json");
  const Json object = Json::parse(json, nullptr, false);
  if (object.is_discarded()) return make_error(Code::usage, "not JSON");
  if (!object.is_object()) return make_error(Code::usage, "not a JSON object");
  try {
    // Models of several modalities keep their decoder in a separate part.
    const Json* decoder = &object;
    for (const char* part : {"text_config", "llm_config"})
      if (object.contains(part) && object[part].is_object()) decoder = &object[part];
    check_spelling(*decoder);
    Model model = model_of(JsonFields(*decoder));
    for (std::string& fault : faults_of(model)) return make_error(Code::usage, std::move(fault));
    return model;
  } catch (const BadField& bad) {
    return make_error(Code::usage, bad.what());
  }
}

}  // namespace gridctl::plan
