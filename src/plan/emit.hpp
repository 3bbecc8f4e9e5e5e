// SPDX-License-Identifier: Apache-2.0
// Writes the files that run a plan: command line and configuration of a framework, and a job file. gridctl starts the
// ranks, so that no file starts another launcher; Accelerate's own is started once on each host. Pure: it returns text
// and writes nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/search.hpp"

namespace gridctl::plan {

enum class Target : std::uint8_t { torchrun, fsdp, deepspeed, accelerate, megatron, torchtitan };
[[nodiscard]] std::optional<Target> target_of(std::string_view text);
[[nodiscard]] std::string_view text_of(Target target);
// Returns the framework whose habits (bytes per parameter, buffers) a plan for this target should assume.
[[nodiscard]] Framework framework_for(Target target);

struct EmittedFile {
  std::string name;  // in the folder
  std::string text;
};
struct EmitQuestion {
  Target target = Target::torchrun;
  std::string job_name;    // "llama-3-8b"
  std::string gpu;         // catalogue key; for the job file
};
// Returns the reason why the target cannot run it; empty if it can.
[[nodiscard]] std::string refusal(Target target, const Training& training, const Parallelism& parallelism);
// Returns whether the program is our train.py, which runs any model of transformers.
[[nodiscard]] bool runs_trainer(Target target);
// Returns the files. Fails with usage, and the reason, if the target cannot run such a parallelism.
[[nodiscard]] Result<std::vector<EmittedFile>> emit(const EmitQuestion& what, const Question& question,
                                                    const Plan& plan);

[[nodiscard]] int nodes_of(const Question& question, const Parallelism& parallelism);

// Return parts of it, one file each.
[[nodiscard]] std::vector<EmittedFile> emit_deepspeed(const Question& question, const Plan& plan);
[[nodiscard]] std::vector<EmittedFile> emit_accelerate(const Question& question, const Plan& plan);
// Returns config.json of a model of this shape, for transformers.
[[nodiscard]] std::string model_config(const Model& model);
// Return the reason why Megatron or torchtitan cannot run it; empty if they can.
[[nodiscard]] std::string megatron_refuses(const Training& training, const Parallelism& parallelism);
[[nodiscard]] std::string torchtitan_refuses(const Training& training, const Parallelism& parallelism);
[[nodiscard]] std::vector<std::string> megatron_flags(const Question& question, const Plan& plan);
[[nodiscard]] std::vector<EmittedFile> emit_torchtitan(const EmitQuestion& what, const Question& question,
                                                       const Plan& plan);

}  // namespace gridctl::plan
