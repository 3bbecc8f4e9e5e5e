// SPDX-License-Identifier: Apache-2.0
// Writes configuration files of DeepSpeed, Accelerate, Megatron-LM and torchtitan.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.hpp"
#include "plan/emit.hpp"

namespace gridctl::plan {

namespace {
using OrderedJson = nlohmann::ordered_json;

bool half_wide(const Training& training) {
  return training.precision != Precision::fp32 && training.precision != Precision::fp16;
}

OrderedJson zero_section(const Parallelism& parallelism) {
  OrderedJson zero{{"stage", parallelism.zero}};
  if (parallelism.zero == 0) return zero;
  zero["overlap_comm"] = true;
  zero["contiguous_gradients"] = true;
  zero["reduce_bucket_size"] = 500000000;
  if (parallelism.zero < 3) zero["allgather_bucket_size"] = 500000000;
  if (parallelism.zero == 3) {
    zero["stage3_prefetch_bucket_size"] = 50000000;
    zero["stage3_max_live_parameters"] = 1000000000;
    zero["stage3_gather_16bit_weights_on_model_save"] = true;
  }
  if (parallelism.offload != Offload::none) zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  if (parallelism.offload == Offload::all) zero["offload_param"] = {{"device", "cpu"}, {"pin_memory", true}};
  return zero;
}

std::int64_t steps_of(const Question& question) {
  const double tokens = static_cast<double>(question.training.batch) * static_cast<double>(question.training.sequence);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(question.tokens / tokens)));
}

void add_shape(const Training& training, std::vector<std::string>& out) {
  const Model& m = training.model;
  const auto add = [&](const std::string& name, auto value) {
    out.push_back("--" + name + " " + std::to_string(value));
  };
  add("num-layers", m.layers);
  add("hidden-size", m.hidden);
  add("ffn-hidden-size", m.ffn);
  add("num-attention-heads", m.heads);
  if (m.kv_rank == 0 && m.kv_heads > 0 && m.kv_heads != m.heads) {
    out.push_back("--group-query-attention");
    add("num-query-groups", m.kv_heads);
  }
  if (m.kv_rank > 0) {
    out.push_back("--multi-latent-attention");
    if (m.q_rank > 0) add("q-lora-rank", m.q_rank);
    add("kv-lora-rank", m.kv_rank);
    add("qk-head-dim", m.dim_of_head());
    add("qk-pos-emb-head-dim", m.rope_dim);
    add("v-head-dim", m.dim_of_head());
  } else if (m.head_dim > 0) {
    add("kv-channels", m.head_dim);
  }
  add("seq-length", training.sequence);
  add("max-position-embeddings", std::max(m.max_sequence, training.sequence));
  if (m.gated_mlp) out.push_back("--swiglu");
  if (!m.biases) {
    out.push_back("--disable-bias-linear");
    out.push_back("--normalization RMSNorm");
  }
  if (!m.learned_positions) out.push_back("--position-embedding-type rope");
  if (!m.tied_embeddings) out.push_back("--untie-embeddings-and-output-weights");
  if (!m.mixture()) return;
  add("num-experts", m.experts);
  add("moe-router-topk", m.experts_per_token);
  const int expert = m.expert_ffn > 0 ? m.expert_ffn : m.ffn;
  add("moe-ffn-hidden-size", expert);
  if (m.shared_experts > 0) add("moe-shared-expert-intermediate-size", m.shared_experts * expert);
  if (m.dense_layers > 0)  // the first ones have no experts
    out.push_back("--moe-layer-freq ([0]*" + std::to_string(m.dense_layers) + "+[1]*" +
                  std::to_string(m.layers - m.dense_layers) + ")");
}

// Divides layers over the stages like Megatron. nullopt: Megatron refuses to.
std::optional<std::vector<std::string>> pipeline_flags(int layers, const Parallelism& l) {
  std::vector<std::string> out;
  if (l.pp == 1) return out;
  int counted = layers;
  if (layers % l.pp != 0 && (layers + 2) % l.pp == 0) {  // embedding and loss count as layers
    counted += 2;
    out = {"--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"};
  }
  const auto add = [&](const char* name, int value) { out.push_back(name + std::to_string(value)); };
  if (counted % l.pp == 0) {
    if (counted / l.pp % l.virtual_stages != 0) return std::nullopt;
    if (l.virtual_stages > 1) add("--num-layers-per-virtual-pipeline-stage ", counted / l.pp / l.virtual_stages);
    return out;
  }
  // The stages between the first and the last are equal.
  const int ends = layers - (layers / l.pp + 1) * (l.pp - 2);
  if (l.virtual_stages > 1 || ends < 2) return std::nullopt;
  add("--decoder-first-pipeline-num-layers ", ends / 2);
  add("--decoder-last-pipeline-num-layers ", ends - ends / 2);
  return out;
}

// ZeRO stages 2 and 3 are those of Megatron-FSDP.
void add_sharding(const Parallelism& parallelism, std::vector<std::string>& out) {
  if (parallelism.zero == 0) return;
  out.push_back("--use-distributed-optimizer");
  if (parallelism.zero == 1) return;
  out.push_back("--use-megatron-fsdp");
  out.push_back(std::string("--data-parallel-sharding-strategy ") +
                (parallelism.zero == 2 ? "optim_grads" : "optim_grads_params"));
  out.push_back("--no-gradient-accumulation-fusion");
  out.push_back("--ckpt-format fsdp_dtensor");
}
}  // namespace

std::vector<EmittedFile> emit_deepspeed(const Question& question, const Plan& plan) {
  const Training& training = question.training;
  const Parallelism& parallelism = plan.parallelism;
  OrderedJson out{{"train_batch_size", training.batch},
           {"train_micro_batch_size_per_gpu", parallelism.micro_batch},
           {"gradient_accumulation_steps", micro_batches(training, parallelism)},
           {"gradient_clipping", 1.0},
           {"zero_optimization", zero_section(parallelism)},
           {"bf16", {{"enabled", half_wide(training)}}},
           {"fp16", {{"enabled", training.precision == Precision::fp16}}}};
  return {{"ds_config.json", out.dump(2) + "\n"}};
}

std::vector<EmittedFile> emit_accelerate(const Question& question, const Plan& plan) {
  const Parallelism& parallelism = plan.parallelism;
  const Training& training = question.training;
  const int nodes = nodes_of(question, parallelism);
  const bool sharded = parallelism.zero >= 2, staged = parallelism.zero == 1;
  std::string text = "compute_environment: LOCAL_MACHINE\n";
  text += std::string("distributed_type: ") +
          (sharded             ? "FSDP"
           : staged            ? "DEEPSPEED"
           : parallelism.gpus() > 1 ? "MULTI_GPU"
                               : "'NO'") +
          "\n";
  text += "num_machines: " + std::to_string(nodes) + "\nnum_processes: " + std::to_string(parallelism.gpus()) + "\n";
  text += std::string("mixed_precision: ") +
          (training.precision == Precision::fp32   ? "'no'"
           : training.precision == Precision::fp16 ? "fp16"
                                                   : "bf16") +
          "\n";
  text +=
      "machine_rank: 0\nmain_training_function: main\nrdzv_backend: static\nsame_network: true\nuse_cpu: false\ndebug: "
      "false\n";
  if (sharded) {
    text +=
        "fsdp_config:\n  fsdp_version: 2\n  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n"
        "  fsdp_cpu_ram_efficient_loading: false\n  fsdp_state_dict_type: SHARDED_STATE_DICT\n";
    text += std::string("  fsdp_reshard_after_forward: ") + (parallelism.zero == 3 ? "true" : "false") + "\n";
    text += std::string("  fsdp_offload_params: ") + (parallelism.offload != Offload::none ? "true" : "false") + "\n";
  }
  std::vector<EmittedFile> files;
  if (staged) {
    text += "deepspeed_config:\n  deepspeed_config_file: ds_config.json\n  zero3_init_flag: false\n";
    files = emit_deepspeed(question, plan);
  }
  files.push_back({"accelerate.yaml", text});
  return files;
}

std::string megatron_refuses(const Training& training, const Parallelism& l) {
  if (l.zero > 1 && l.pp > 1) return "Megatron-FSDP shards gradients and parameters only with pp=1";
  if (training.method != Method::full) return "Megatron's pretrain_gpt.py cannot train adapters";
  if (training.model.name.starts_with("gemma"))
    return "Megatron's pretrain_gpt.py lacks the gated GELU that " + training.model.name + " needs";
  if (!pipeline_flags(training.model.layers, l))
    return "Megatron cannot divide " + std::to_string(training.model.layers) + " layers over " + std::to_string(l.pp * l.virtual_stages) +
           " stages";
  if (l.virtual_stages > 1 && micro_batches(training, l) % l.pp != 0)
    return "Megatron interleaves only complete groups of pp=" + std::to_string(l.pp) + " micro-batches";
  return "";
}

std::vector<std::string> megatron_flags(const Question& question, const Plan& plan) {
  const Training& training = question.training;
  const Parallelism& l = plan.parallelism;
  std::vector<std::string> out;
  const auto add = [&](const std::string& name, auto value) {
    out.push_back("--" + name + " " + std::to_string(value));
  };
  add("tensor-model-parallel-size", l.tp);
  add("pipeline-model-parallel-size", l.pp);
  if (const auto flags = pipeline_flags(training.model.layers, l)) out.insert(out.end(), flags->begin(), flags->end());
  if (l.cp > 1) add("context-parallel-size", l.cp);
  if (l.ep > 1) add("expert-model-parallel-size", l.ep);
  if (l.tp > 1 && l.sequence_parallel) out.push_back("--sequence-parallel");
  add_sharding(l, out);
  add("micro-batch-size", l.micro_batch);
  add("global-batch-size", training.batch);
  if (l.recompute == Recompute::full) {
    out.push_back("--recompute-granularity full");
    out.push_back("--recompute-method uniform");
    out.push_back("--recompute-num-layers 1");
  } else if (l.recompute == Recompute::selective) {
    out.push_back("--recompute-granularity selective");
  }
  if (half_wide(training)) out.push_back("--bf16");
  if (training.precision == Precision::fp16) out.push_back("--fp16");
  if (training.precision == Precision::fp8) out.push_back("--fp8-format hybrid");
  if (training.flash_attention) out.push_back("--use-flash-attn");
  add_shape(training, out);
  if (question.tokens > 0) add("train-iters", steps_of(question));
  return out;
}

namespace {
// Holds recipes of torchtitan 0.3 for known models. An older version has the same sizes in its TOML, in capitals.
struct Recipe {
  std::string_view model, family, size;
  Precision precision = Precision::bf16;
};
constexpr Recipe k_recipes[] = {
    {"llama-3-8b", "llama3", "8b"}, {"llama-3.1-8b", "llama3", "8b"}, {"llama-3-70b", "llama3", "70b"},
    {"llama-3.1-70b", "llama3", "70b"}, {"llama-3.1-405b", "llama3", "405b", Precision::fp8},
    {"qwen3-30b-a3b", "qwen3", "30b_a3b"}, {"qwen3-32b", "qwen3", "32b"}, {"deepseek-v3", "deepseek_v3", "671b"}};
const Recipe* recipe_of(const Model& model) {
  const Recipe* const found = std::ranges::find(k_recipes, std::string_view(model.name), &Recipe::model);
  return found == std::end(k_recipes) ? nullptr : found;
}

// From 0.3 on, torchtitan has no TOML: it uses a function of its registry, and arguments that change the result.
std::string titan_arguments(const Question& question, const Plan& plan) {
  const Training& training = question.training;
  const Parallelism& l = plan.parallelism;
  const Recipe& recipe = *recipe_of(training.model);
  const std::string family(recipe.family);
  std::string out = "--module " + family + "\n--config " + family + "_" + std::string(recipe.size) + "\n";
  const auto add = [&](const char* name, std::int64_t value) {
    out += std::string("--") + name + " " + std::to_string(value) + "\n";
  };
  add("training.local_batch_size", l.pp > 1 ? training.batch / l.dp : l.micro_batch);
  add("training.global_batch_size", training.batch);
  add("training.seq_len", training.sequence);
  add("training.steps", steps_of(question));
  add("parallelism.data_parallel_shard_degree", l.dp);
  add("parallelism.tensor_parallel_degree", l.tp);
  add("parallelism.pipeline_parallel_degree", l.pp);
  add("parallelism.context_parallel_degree", l.cp);
  add("parallelism.expert_parallel_degree", l.ep);
  if (l.pp > 1) {
    add("parallelism.pipeline_parallel_microbatch_size", l.micro_batch);
    out += std::string("--parallelism.pipeline_parallel_schedule ") +
           (l.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B") +
           "\n--training.disable_cuda_graphs\n";  // it has none in pipelines
  }
  out += "--checkpoint.enable\n";
  add("checkpoint.interval", 500);
  return out + "activation-checkpoint:" + std::string(text_of(l.recompute)) + "\n";
}
}  // namespace

std::string torchtitan_refuses(const Training& training, const Parallelism& l) {
  const Recipe* const recipe = recipe_of(training.model);
  if (recipe == nullptr) {
    std::vector<std::string> known;
    for (const Recipe& one : k_recipes) known.emplace_back(one.model);
    return "torchtitan's registry has no " + training.model.name + "; it has " + join(known, ", ");
  }
  if (training.method != Method::full) return "torchtitan's recipe cannot train adapters";
  if (training.precision != recipe->precision)
    return "torchtitan's recipe of " + training.model.name + " computes in " + std::string(text_of(recipe->precision)) +
           ": use --precision " + std::string(text_of(recipe->precision));
  return l.dp > 1 && l.zero != 3 ? "torchtitan shards parameters: use zero=3" : "";
}

std::vector<EmittedFile> emit_torchtitan(const EmitQuestion& what, const Question& question, const Plan& plan) {
  const Training& training = question.training;
  const Parallelism& l = plan.parallelism;
  const Recipe& recipe = *recipe_of(training.model);
  std::string flavor(recipe.size);
  std::ranges::transform(flavor, flavor.begin(), [](char c) { return c == '_' ? '-' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  const auto degree = [](const char* key, std::int64_t value) {
    return std::string(key) + " = " + std::to_string(value) + "\n";
  };
  std::string text = "[job]\ndump_folder = \"./outputs\"\ndescription = \"" + what.job_name + "\"\n\n";
  text += "[model]\nname = \"" + std::string(recipe.family) + "\"\nflavor = \"" + flavor + "\"\n\n";
  text += "[optimizer]\nname = \"AdamW\"\n\n[training]\n";
  text += degree("local_batch_size", l.pp > 1 ? training.batch / l.dp : l.micro_batch) +
          degree("global_batch_size", training.batch) + degree("seq_len", training.sequence);
  text += degree("steps", steps_of(question));
  text += "\n[parallelism]\ndata_parallel_replicate_degree = 1\n" + degree("data_parallel_shard_degree", l.dp) +
          degree("tensor_parallel_degree", l.tp) + degree("pipeline_parallel_degree", l.pp) +
          degree("context_parallel_degree", l.cp);
  if (l.ep > 1) text += degree("expert_parallel_degree", l.ep);
  if (l.pp > 1)
    text += degree("pipeline_parallel_microbatch_size", l.micro_batch) + "pipeline_parallel_schedule = \"" +
            (l.virtual_stages > 1 ? "Interleaved1F1B" : "1F1B") + "\"\n";
  text += std::string("\n[activation_checkpoint]\nmode = \"") + std::string(text_of(l.recompute)) + "\"\n";
  if (l.recompute == Recompute::selective) text += "selective_ac_option = \"op\"\n";
  text += "\n[checkpoint]\nenable = true\nfolder = \"checkpoint\"\ninterval = 500\n";
  return {{"titan.toml", text}, {"titan.args", titan_arguments(question, plan)}};
}

}  // namespace gridctl::plan
