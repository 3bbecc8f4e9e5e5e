// SPDX-License-Identifier: Apache-2.0
#include "plan/emit.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/formatted.hpp"
#include "base/text.hpp"

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

// The same on every node; gridctl tells each its rank and the first one's address.
std::string torchrun_line(const Question& question, const Parallelism& parallelism, const std::string& program) {
  const int nodes = nodes_of(question, parallelism);
  std::string line = "torchrun --nproc-per-node " + std::to_string(per_node(question, parallelism));
  if (nodes == 1) return line + " --standalone " + program;
  return line + " --nnodes " + std::to_string(nodes) +
         " --node-rank \"$GRIDCTL_NODE_RANK\" --rdzv-backend c10d --rdzv-id \"$GRIDCTL_JOB_ID\" \\\n"
         "  --rdzv-endpoint \"$GRIDCTL_MASTER_ADDR:$GRIDCTL_MASTER_PORT\" " +
         program;
}

std::string script(const std::string& command) { return "#!/bin/sh\nset -e\nexec " + command + "\n"; }

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
  text += "launcher: torchrun\n";
  text += std::string("class: ") + (parallelism.gpus() > 1 ? "tight" : "auto") + "\n";
  if (family(training.model.name) != nullptr) {
    // Planned again for the hosts there are, in this parallelism.
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
    text += "# launch.sh passes on what it is given: --data-path, --tokenizer-type, --lr and the like.\n";
  return text + "workdir: .\nrun: sh launch.sh\n";
}

// What transformers' TrainingArguments say beside the strategy.
OrderedJson training_arguments(const Question& question, const Plan& plan) {
  const Training& training = question.training;
  const Parallelism& parallelism = plan.parallelism;
  OrderedJson out{{"output_dir", "out"},
           {"per_device_train_batch_size", parallelism.micro_batch},
           {"gradient_accumulation_steps", micro_batches(training, parallelism)},
           {"bf16", training.precision != Precision::fp32 && training.precision != Precision::fp16},
           {"fp16", training.precision == Precision::fp16},
           {"gradient_checkpointing", parallelism.recompute != Recompute::none},
           {"save_strategy", "steps"},
           {"save_steps", 500}};
  if (question.tokens > 0)
    out["max_steps"] = static_cast<std::int64_t>(
        std::ceil(question.tokens / (static_cast<double>(training.batch) * static_cast<double>(training.sequence))));
  return out;
}

std::vector<EmittedFile> emit_torchrun(const Question& question, const Plan& plan) {
  return {{"launch.sh", script(torchrun_line(question, plan.parallelism, "train.py --config training_args.json \"$@\""))},
          {"training_args.json", training_arguments(question, plan).dump(2) + "\n"}};
}

std::vector<EmittedFile> emit_fsdp(const Question& question, const Plan& plan) {
  OrderedJson arguments = training_arguments(question, plan);
  const Parallelism& parallelism = plan.parallelism;
  std::string words = parallelism.zero == 3 ? "full_shard" : "shard_grad_op";
  if (parallelism.offload != Offload::none) words += " offload";
  arguments["fsdp"] = words + " auto_wrap";
  arguments["fsdp_config"] = {{"reshard_after_forward", parallelism.zero == 3},
                              {"backward_prefetch", "backward_pre"},
                              {"limit_all_gathers", true},
                              {"use_orig_params", true},
                              {"sync_module_states", true},
                              {"activation_checkpointing", parallelism.recompute != Recompute::none}};
  arguments["gradient_checkpointing"] = false;  // FSDP does it, once
  return {{"launch.sh", script(torchrun_line(question, parallelism, "train.py --config training_args.json \"$@\""))},
          {"training_args.json", arguments.dump(2) + "\n"}};
}

std::vector<EmittedFile> emit_megatron(const Question& question, const Plan& plan) {
  const Parallelism& parallelism = plan.parallelism;
  // Data, tokenizer and learning rate are arguments of the script: `sh launch.sh --data-path … --lr …`.
  const std::string program =
      "pretrain_gpt.py $(cat megatron.args) --save \"$GRIDCTL_CKPT_DIR\" --load \"$GRIDCTL_CKPT_DIR\" \"$@\"";
  std::string arguments;
  for (const std::string& flag : megatron_flags(question, plan)) arguments += flag + "\n";
  std::string text = "#!/bin/sh\nset -ef\n";  // no patterns: a layer frequency looks like one
  // Megatron insists: its kernels and messages are queued in the order that overlaps them.
  if ((parallelism.tp > 1 || parallelism.cp > 1) && parallelism.zero < 2) text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  return {{"launch.sh", text + "exec " + torchrun_line(question, parallelism, program) + "\n"},
          {"megatron.args", arguments}};
}

// What the target cannot do of the parallelism, or nothing.
std::string cannot(Target target, const Parallelism& parallelism) {
  const bool divided = parallelism.tp > 1 || parallelism.pp > 1 || parallelism.cp > 1 || parallelism.ep > 1;
  if (parallelism.offload == Offload::activations) return "only torchtune's own recipes offload activations";
  switch (target) {
    case Target::torchrun:
      if (divided) return "plain data parallelism divides no model: it needs tp=pp=cp=ep=1";
      return parallelism.zero > 0                   ? "plain data parallelism shards nothing: it needs zero=0"
             : parallelism.offload != Offload::none ? "nothing is offloaded by plain data parallelism"
                                               : "";
    case Target::fsdp:
      if (divided) return "FSDP alone needs tp=pp=cp=ep=1";
      return parallelism.zero < 2 ? "FSDP shards at least gradients: it needs zero=2 or zero=3" : "";
    case Target::deepspeed: return divided ? "DeepSpeed's configuration alone needs tp=pp=cp=ep=1" : "";
    case Target::accelerate: return divided ? "Accelerate's configuration needs tp=pp=cp=ep=1" : "";
    case Target::megatron:
      if (parallelism.zero > 1 && parallelism.pp > 1) return "Megatron-FSDP shards gradients and parameters only with pp=1";
      return parallelism.offload != Offload::none ? "Megatron's flags here offload nothing" : "";
    case Target::torchtitan:
      if (parallelism.dp > 1 && parallelism.zero != 3)
        return "torchtitan shards parameters: it needs zero=3";
      return parallelism.offload != Offload::none ? "torchtitan offloads nothing" : "";
  }
  return "";
}
}  // namespace

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
    case Target::accelerate: return Framework::fsdp;
    case Target::deepspeed: return Framework::deepspeed;
    case Target::megatron: return Framework::megatron;
    case Target::torchtitan: return Framework::fsdp2;
  }
  return Framework::fsdp2;
}

bool can_emit(Target target, const Parallelism& parallelism) { return cannot(target, parallelism).empty(); }

Result<std::vector<EmittedFile>> emit(const EmitQuestion& what, const Question& question, const Plan& plan) {
  if (const std::string why = cannot(what.target, plan.parallelism); !why.empty())
    return make_error(Code::usage, "--emit " + std::string(text_of(what.target)) + " cannot run " +
                                       text_of(plan.parallelism) + ": " + why);
  std::vector<EmittedFile> files;
  switch (what.target) {
    case Target::torchrun: files = emit_torchrun(question, plan); break;
    case Target::fsdp: files = emit_fsdp(question, plan); break;
    case Target::deepspeed:
      files = emit_deepspeed(question, plan);
      files.push_back(
          {"launch.sh", script(torchrun_line(question, plan.parallelism, "train.py --deepspeed ds_config.json \"$@\""))});
      break;
    case Target::accelerate: files = emit_accelerate(question, plan); break;
    case Target::megatron: files = emit_megatron(question, plan); break;
    case Target::torchtitan:
      files = emit_torchtitan(what, question, plan);
      files.push_back(
          {"launch.sh", "#!/bin/sh\nset -e\n# Before 0.3 torchtitan reads TOML.\n"
                        "if python3 -c 'from torchtitan.config import JobConfig' 2>/dev/null\n"
                        "then set -- --job.config_file titan.toml \"$@\"\nelse set -- $(cat titan.args) \"$@\"\nfi\nexec " +
                            torchrun_line(question, plan.parallelism, "-m torchtitan.train \"$@\"") + "\n"});
      break;
  }
  files.push_back({"job.yaml", job_file(what, question, plan)});
  std::ranges::sort(files, {}, &EmittedFile::name);
  return files;
}

}  // namespace gridctl::plan
