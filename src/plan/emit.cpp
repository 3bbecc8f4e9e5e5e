// SPDX-License-Identifier: Apache-2.0
#include "plan/emit.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/formatted.hpp"

namespace gridctl::plan {

namespace {
using OrderedJson = nlohmann::ordered_json;

const std::vector<std::pair<std::string_view, Target>>& targets() {
  static const std::vector<std::pair<std::string_view, Target>> words{
      {"torchrun", Target::torchrun},     {"fsdp", Target::fsdp},         {"deepspeed", Target::deepspeed},
      {"accelerate", Target::accelerate}, {"megatron", Target::megatron}, {"torchtitan", Target::torchtitan}};
  return words;
}

int per_node(const Question& question, const Parallelism& parallelism) {
  return std::min(parallelism.gpus(), question.cluster.gpus_per_node);
}

std::string number(double value) { return formatted("%.6g", value); }

// Writes the line that runs once on each node. gridctl gives each node its rank and the first node's address.
std::string accelerate_line(int nodes) {
  std::string line = "python3 -m accelerate.commands.launch --config_file accelerate.yaml";
  if (nodes > 1)
    line += " --machine_rank $GRIDCTL_NODE_RANK --main_process_ip $GRIDCTL_MASTER_ADDR --main_process_port "
            "$GRIDCTL_MASTER_PORT";
  return line + " train.py";
}

std::string job_file(const EmitQuestion& what, const Question& question, const Plan& plan) {
  const Parallelism& parallelism = plan.parallelism;
  const Training& training = question.training;
  const Memory& memory = plan.memory;
  const int nodes = nodes_of(question, parallelism);
  std::string gpu = what.gpu;
  std::ranges::replace(gpu, ' ', '-');
  std::string text = "# " + text_of(parallelism) + ": " + number(plan.time.seconds) + " s a step, " +
                     number(memory.peak() / 1e9) + " GB on each GPU, " + number(plan.tokens_per_s) +
                     " tokens/s expected\n";
  text += "name: " + what.job_name + "\n";
  text += "resources:\n  accelerators: \"" +
          (gpu.empty() ? std::to_string(static_cast<int>(question.cluster.device.memory / 1.08e9)) + "GB.." : gpu) +
          ":" + std::to_string(per_node(question, parallelism)) + "\"\n";
  if (nodes > 1) text += "num_nodes: " + std::to_string(nodes) + "\n";
  text += std::string("launcher: ") + (what.target == Target::accelerate ? "plain" : "torchrun") + "\n";
  text += std::string("class: ") + (parallelism.gpus() > 1 ? "tight" : "auto") + "\n";
  if (family(training.model.name) != nullptr) {
    // Writes a plan that is made again for the present hosts, in this parallelism.
    std::string parts = text_of(parallelism);
    std::ranges::replace(parts, ' ', ',');
    text += "workload:\n  model: " + training.model.name + "\n  method: " + std::string(text_of(training.method)) +
            "\n  seq: " + std::to_string(training.sequence) + "\n  batch: " + std::to_string(training.batch) +
            "\n  framework: " + std::string(text_of(training.framework)) + "\n  layout: " + parts + "\n";
  } else {
    text += "workload:\n  params: " + std::to_string(static_cast<long long>(count_params(training.model).total)) +
            "\n  step: " + number(std::clamp(plan.time.seconds, 0.001, 86400.0)) + "s\n  model_memory: " +
            std::to_string(static_cast<long long>(memory.peak() * parallelism.tp * parallelism.pp * parallelism.cp / 1e6)) + "MB\n";
  }
  if (what.target == Target::megatron)
    text += "# pretrain_gpt.py and the packages of Megatron-LM belong in this folder or in the image.\n";
  return text + "workdir: .\nrun: " +
         (what.target == Target::accelerate ? accelerate_line(nodes)
          : runs_trainer(what.target)       ? "python3 train.py"
                                            : "sh launch.sh") +
         "\n";
}

// Returns the TrainingArguments of transformers. `accelerate` and `deepspeed` keep the sharding in a separate file.
OrderedJson training_arguments(Target target, const Question& question, const Plan& plan) {
  const Training& training = question.training;
  const Parallelism& parallelism = plan.parallelism;
  const bool fsdp = target == Target::fsdp, recomputes = parallelism.recompute != Recompute::none;
  OrderedJson out{{"output_dir", "out"},
                  {"per_device_train_batch_size", parallelism.micro_batch},
                  {"gradient_accumulation_steps", micro_batches(training, parallelism)},
                  {"bf16", training.precision != Precision::fp32 && training.precision != Precision::fp16},
                  {"fp16", training.precision == Precision::fp16},
                  {"gradient_checkpointing", recomputes && !fsdp},
                  {"save_strategy", "steps"},
                  {"save_steps", 500},
                  {"logging_steps", 10}};
  if (question.tokens > 0)
    out["max_steps"] = static_cast<std::int64_t>(
        std::ceil(question.tokens / (static_cast<double>(training.batch) * static_cast<double>(training.sequence))));
  if (target == Target::deepspeed) out["deepspeed"] = "ds_config.json";
  if (!fsdp) return out;
  const std::string words = parallelism.zero == 3 ? "full_shard" : "shard_grad_op";
  out["fsdp"] = words + (parallelism.offload != Offload::none ? " offload" : "") + " auto_wrap";
  out["fsdp_config"] = {{"reshard_after_forward", parallelism.zero == 3},
                        {"activation_checkpointing", recomputes},  // FSDP does it, once
                        {"state_dict_type", "SHARDED_STATE_DICT"}};
  return out;
}

// Returns the files that train.py reads: the model's shape, the trainer's arguments and the adapter's.
std::vector<EmittedFile> trainer_files(Target target, const Question& question, const Plan& plan) {
  const Training& training = question.training;
  OrderedJson arguments = training_arguments(target, question, plan);
  std::vector<EmittedFile> files{{"training_args.json", arguments.dump(2) + "\n"},
                                 {"model.json", model_config(training.model)}};
  const OrderedJson data{{"sequence", training.sequence}};
  files.push_back({"data.json", data.dump(2) + "\n"});
  if (training.method == Method::full) return files;
  const OrderedJson adapter{{"r", k_lora_rank}, {"lora_alpha", 2 * k_lora_rank}, {"target_modules", "all-linear"},
                            {"task_type", "CAUSAL_LM"}, {"load_in_4bit", training.method == Method::qlora}};
  files.push_back({"adapter.json", adapter.dump(2) + "\n"});
  return files;
}

std::vector<EmittedFile> emit_megatron(const Question& question, const Plan& plan) {
  const Parallelism& parallelism = plan.parallelism;
  std::string arguments;
  for (const std::string& flag : megatron_flags(question, plan)) arguments += flag + "\n";
  std::string text = "#!/bin/sh\nset -ef\n";  // no patterns: a layer frequency looks like one
  // Megatron requires it: its kernels and messages are queued in the order that overlaps them.
  if ((parallelism.tp > 1 || parallelism.cp > 1) && parallelism.zero < 2) text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  text += "exec python3 pretrain_gpt.py $(cat megatron.args data.args) --save \"$GRIDCTL_CKPT_DIR\" --load "
          "\"$GRIDCTL_CKPT_DIR\" \"$@\"\n";
  // These flags make the job run without changes.
  const std::string data = "--mock-data\n--tokenizer-type NullTokenizer\n--vocab-size " +
                           std::to_string(question.training.model.vocab) + "\n--lr 3e-4\n--save-interval 500\n" +
                           (question.tokens > 0 ? "" : "--train-iters 1000\n");
  return {{"launch.sh", text}, {"megatron.args", arguments}, {"data.args", data}};
}

}  // namespace

bool runs_trainer(Target target) { return target != Target::megatron && target != Target::torchtitan; }

std::string refusal(Target target, const Training& training, const Parallelism& parallelism) {
  const bool divided = parallelism.tp > 1 || parallelism.pp > 1 || parallelism.cp > 1 || parallelism.ep > 1;
  const bool moves = parallelism.offload != Offload::none;
  if (parallelism.offload == Offload::activations) return "only torchtune's own recipes offload activations";
  if (runs_trainer(target) && parallelism.recompute == Recompute::selective)
    return "transformers recompute complete layers: use recompute=none or recompute=full";
  if (runs_trainer(target) && training.precision == Precision::fp8) return "transformers train in bf16, fp16 or fp32";
  switch (target) {
    case Target::torchrun:
      if (divided) return "plain data parallelism does not divide the model: use tp=pp=cp=ep=1";
      return parallelism.zero > 0 ? "plain data parallelism shards nothing: use zero=0"
             : moves              ? "plain data parallelism offloads nothing"
                                  : "";
    case Target::fsdp:
      if (divided) return "FSDP alone requires tp=pp=cp=ep=1";
      return parallelism.zero < 2 ? "FSDP shards at least gradients: use zero=2 or zero=3" : "";
    case Target::deepspeed: return divided ? "DeepSpeed's configuration alone needs tp=pp=cp=ep=1" : "";
    case Target::accelerate: return divided ? "Accelerate's configuration needs tp=pp=cp=ep=1" : "";
    case Target::megatron:
      return moves ? "gridctl's flags for Megatron offload nothing" : megatron_refuses(training, parallelism);
    case Target::torchtitan: return moves ? "torchtitan offloads nothing" : torchtitan_refuses(training, parallelism);
  }
  return "";
}

int nodes_of(const Question& question, const Parallelism& parallelism) {
  return (parallelism.gpus() + question.cluster.gpus_per_node - 1) / question.cluster.gpus_per_node;
}

std::optional<Target> target_of(std::string_view text) {
  for (const auto& [word, target] : targets())
    if (word == text) return target;
  return std::nullopt;
}
std::string_view text_of(Target target) {
  for (const auto& [word, one] : targets())
    if (one == target) return word;
  return "";
}

Framework framework_for(Target target) {
  switch (target) {
    case Target::torchrun: return Framework::ddp;
    case Target::fsdp:
    case Target::accelerate: return Framework::transformers;
    case Target::deepspeed: return Framework::deepspeed;
    case Target::megatron: return Framework::megatron;
    case Target::torchtitan: return Framework::fsdp2;
  }
  return Framework::fsdp2;
}

Result<std::vector<EmittedFile>> emit(const EmitQuestion& what, const Question& question, const Plan& plan) {
  if (const std::string why = refusal(what.target, question.training, plan.parallelism); !why.empty())
    return make_error(Code::usage, "--emit " + std::string(text_of(what.target)) + " cannot run " +
                                       text_of(plan.parallelism) + ": " + why);
  std::vector<EmittedFile> files;
  if (runs_trainer(what.target)) files = trainer_files(what.target, question, plan);
  const auto add = [&](std::vector<EmittedFile> more) { std::ranges::move(more, std::back_inserter(files)); };
  switch (what.target) {
    case Target::torchrun:
    case Target::fsdp: break;
    case Target::deepspeed: add(emit_deepspeed(question, plan)); break;
    case Target::accelerate: add(emit_accelerate(question, plan)); break;
    case Target::megatron: add(emit_megatron(question, plan)); break;
    case Target::torchtitan:
      add(emit_torchtitan(what, question, plan));
      add({{"launch.sh", "#!/bin/sh\nset -e\n# Before 0.3 torchtitan reads TOML.\n"
                         "if python3 -c 'from torchtitan.config import JobConfig' 2>/dev/null\n"
                         "then set -- --job.config_file titan.toml --checkpoint.folder \"$GRIDCTL_CKPT_DIR\" \"$@\"\n"
                         "else set -- $(cat titan.args) --checkpoint.folder \"$GRIDCTL_CKPT_DIR\" \"$@\"\nfi\n"
                         "exec python3 -m torchtitan.train \"$@\"\n"}});
      break;
  }
  files.push_back({"job.yaml", job_file(what, question, plan)});
  std::ranges::sort(files, {}, &EmittedFile::name);
  return files;
}

}  // namespace gridctl::plan
