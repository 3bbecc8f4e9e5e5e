// SPDX-License-Identifier: Apache-2.0
// Holds the shapes of well-known models, from their config.json as published.
#include <algorithm>

#include "base/text.hpp"
#include "plan/model.hpp"

namespace gridctl::plan {

namespace {
struct Shape {
  const char* name;
  int layers, hidden, ffn, heads, kv_heads, head_dim;
  std::int64_t vocab, max_sequence;
  bool tied;
};
// Holds models with gated MLP, RMSNorm and rotary positions.
constexpr Shape k_llamas[] = {
    {"llama-2-7b", 32, 4096, 11008, 32, 32, 0, 32000, 4096, false},
    {"llama-2-13b", 40, 5120, 13824, 40, 40, 0, 32000, 4096, false},
    {"llama-2-70b", 80, 8192, 28672, 64, 8, 0, 32000, 4096, false},
    {"llama-3-8b", 32, 4096, 14336, 32, 8, 0, 128256, 8192, false},
    {"llama-3-70b", 80, 8192, 28672, 64, 8, 0, 128256, 8192, false},
    {"llama-3.1-8b", 32, 4096, 14336, 32, 8, 0, 128256, 131072, false},
    {"llama-3.1-70b", 80, 8192, 28672, 64, 8, 0, 128256, 131072, false},
    {"llama-3.1-405b", 126, 16384, 53248, 128, 8, 0, 128256, 131072, false},
    {"llama-3.2-1b", 16, 2048, 8192, 32, 8, 64, 128256, 131072, true},
    {"llama-3.2-3b", 28, 3072, 8192, 24, 8, 128, 128256, 131072, true},
    {"codellama-34b", 48, 8192, 22016, 64, 8, 0, 32000, 16384, false},
    {"mistral-7b", 32, 4096, 14336, 32, 8, 0, 32768, 32768, false},
    {"mistral-nemo-12b", 40, 5120, 14336, 32, 8, 128, 131072, 131072, false},
    {"mistral-large-123b", 88, 12288, 28672, 96, 8, 0, 32768, 131072, false},
    {"qwen2.5-0.5b", 24, 896, 4864, 14, 2, 0, 151936, 32768, true},
    {"qwen2.5-1.5b", 28, 1536, 8960, 12, 2, 0, 151936, 32768, true},
    {"qwen2.5-7b", 28, 3584, 18944, 28, 4, 0, 152064, 32768, false},
    {"qwen2.5-32b", 64, 5120, 27648, 40, 8, 0, 152064, 32768, false},
    {"qwen2.5-72b", 80, 8192, 29568, 64, 8, 0, 152064, 32768, false},
    {"qwen3-8b", 36, 4096, 12288, 32, 8, 128, 151936, 40960, false},
    {"qwen3-32b", 64, 5120, 25600, 64, 8, 128, 151936, 40960, false},
    {"gemma-2-2b", 26, 2304, 9216, 8, 4, 256, 256000, 8192, true},
    {"gemma-2-9b", 42, 3584, 14336, 16, 8, 256, 256000, 8192, true},
    {"gemma-2-27b", 46, 4608, 36864, 32, 16, 128, 256000, 8192, true},
    {"phi-3-mini", 32, 3072, 8192, 32, 32, 0, 32064, 4096, false},
    {"phi-4", 40, 5120, 17920, 40, 10, 0, 100352, 16384, false},
    {"yi-34b", 60, 7168, 20480, 56, 8, 0, 64000, 4096, false},
    {"tinyllama-1.1b", 22, 2048, 5632, 32, 4, 0, 32000, 2048, false},
    {"smollm2-1.7b", 24, 2048, 8192, 32, 32, 0, 49152, 8192, true},
    {"olmo-2-7b", 32, 4096, 11008, 32, 32, 0, 100352, 4096, false},
};
// Holds models with plain MLP, LayerNorm and biases.
constexpr Shape k_gpts[] = {
    {"gpt2", 12, 768, 3072, 12, 12, 0, 50257, 1024, true},
    {"gpt2-medium", 24, 1024, 4096, 16, 16, 0, 50257, 1024, true},
    {"gpt2-large", 36, 1280, 5120, 20, 20, 0, 50257, 1024, true},
    {"gpt2-xl", 48, 1600, 6400, 25, 25, 0, 50257, 1024, true},
    {"gpt3-175b", 96, 12288, 49152, 96, 96, 0, 51200, 2048, true},
    {"bloom-176b", 70, 14336, 57344, 112, 112, 0, 250880, 2048, true},
    {"pythia-1b", 16, 2048, 8192, 8, 8, 0, 50304, 2048, false},
    {"pythia-12b", 36, 5120, 20480, 40, 40, 0, 50688, 2048, false},
};

Model model_of(const Shape& shape, bool gpt) {
  Model model;
  model.name = shape.name;
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.ffn = shape.ffn;
  model.heads = shape.heads;
  model.kv_heads = shape.kv_heads;
  model.head_dim = shape.head_dim;
  model.vocab = shape.vocab;
  model.max_sequence = shape.max_sequence;
  model.tied_embeddings = shape.tied;
  model.gated_mlp = !gpt;
  model.biases = gpt;
  const std::string_view name = shape.name;
  model.learned_positions = name.starts_with("gpt");
  model.positions = model.learned_positions ? shape.max_sequence : 0;
  return model;
}

Model mixture_of(const Shape& shape, int experts, int per_token, int expert_ffn, int shared = 0, int dense_layers = 0) {
  Model model = model_of(shape, false);
  model.experts = experts;
  model.experts_per_token = per_token;
  model.expert_ffn = expert_ffn;
  model.shared_experts = shared;
  model.dense_layers = dense_layers;
  return model;
}

std::vector<Model> all_families() {
  std::vector<Model> out;
  for (const Shape& shape : k_llamas) out.push_back(model_of(shape, false));
  for (const Shape& shape : k_gpts) out.push_back(model_of(shape, true));
  out.push_back(mixture_of({"mixtral-8x7b", 32, 4096, 14336, 32, 8, 0, 32000, 32768, false}, 8, 2, 14336));
  out.push_back(mixture_of({"mixtral-8x22b", 56, 6144, 16384, 48, 8, 0, 32768, 65536, false}, 8, 2, 16384));
  out.push_back(mixture_of({"qwen3-30b-a3b", 48, 2048, 6144, 32, 4, 128, 151936, 40960, false}, 128, 8, 768));
  out.push_back(mixture_of({"qwen3-235b-a22b", 94, 4096, 12288, 64, 4, 128, 151936, 40960, false}, 128, 8, 1536));
  out.push_back(mixture_of({"olmoe-7b", 16, 2048, 1024, 16, 16, 0, 50304, 4096, false}, 64, 8, 1024));
  Model deepseek =
      mixture_of({"deepseek-v3", 61, 7168, 18432, 128, 128, 128, 129280, 163840, false}, 256, 8, 2048, 1, 3);
  deepseek.q_rank = 1536;
  deepseek.kv_rank = 512;
  deepseek.rope_dim = 64;
  out.push_back(deepseek);
  std::ranges::sort(out, {}, &Model::name);
  return out;
}

std::string plain(std::string_view name) {
  if (const std::size_t slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string out;
  for (const char c : lower(name))
    if (c != '-' && c != '_' && c != ' ' && c != '.') out += c;
  for (const std::string_view tail : {"instruct", "hf", "base", "chat"})
    if (out.ends_with(tail) && out.size() > tail.size()) out.erase(out.size() - tail.size());
  if (out.starts_with("metallama")) out.erase(0, 4);
  return out;
}
}  // namespace

std::span<const Model> families() {
  static const std::vector<Model> all = all_families();
  return all;
}

const Model* family(std::string_view name) {
  const std::string wanted = plain(name);
  for (const Model& model : families())
    if (plain(model.name) == wanted) return &model;
  return nullptr;
}

}  // namespace gridctl::plan
