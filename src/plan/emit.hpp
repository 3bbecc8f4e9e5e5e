// SPDX-License-Identifier: Apache-2.0
// The files that run a plan: command line and configuration of a framework, and a job file. Pure: text, nothing is
// written. Switching the strategy changes these files and nothing of the model's code.
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
// The framework whose habits (bytes per parameter, buffers) a plan for it should assume.
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
[[nodiscard]] bool can_emit(Target target, const Parallelism& parallelism);
// usage: the target cannot run such a parallelism, with what it cannot.
[[nodiscard]] Result<std::vector<EmittedFile>> emit(const EmitQuestion& what, const Question& question,
                                                    const Plan& plan);

[[nodiscard]] int nodes_of(const Question& question, const Parallelism& parallelism);

// Parts of it, one file each.
[[nodiscard]] std::vector<EmittedFile> emit_deepspeed(const Question& question, const Plan& plan);
[[nodiscard]] std::vector<EmittedFile> emit_accelerate(const Question& question, const Plan& plan);
[[nodiscard]] std::vector<std::string> megatron_flags(const Question& question, const Plan& plan);
[[nodiscard]] std::vector<EmittedFile> emit_torchtitan(const EmitQuestion& what, const Question& question,
                                                       const Plan& plan);

}  // namespace gridctl::plan
