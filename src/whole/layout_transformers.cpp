// SPDX-License-Identifier: Apache-2.0
// Recognises the Transformers Trainer: checkpoint-N/ with the weights, files added by Accelerate, FSDP or DeepSpeed,
// and trainer_state.json last. Every rank writes its own rng_state.
#include <algorithm>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_step = "checkpoint-", k_last = "trainer_state.json";

bool is_marked(const Folder& folder) {
  // Before the first of these exists, the folder contains only a model, which programs of any kind save under such
  // names.
  for (const std::string_view file : {k_last, std::string_view("training_args.bin"), std::string_view("rng_state.pth"),
                                      std::string_view("rng_state_0.pth")})
    if (folder.find(file) != nullptr) return true;
  return folder.find("optimizer.pt") != nullptr && folder.find("scheduler.pt") != nullptr;
}

// Returns true for a folder beside the Trainer's that it may have started.
bool may_be_marked(const Folder& folder) {
  return folder.find("config.json") != nullptr || folder.find("adapter_config.json") != nullptr ||
         folder.find("optimizer.pt") != nullptr || !weights_missing(folder);
}

// Checks rng_state_0.pth to rng_state_N.pth for gaps; ranks write them without waiting for each other.
std::optional<Trouble> random_states_missing(const Folder& folder) {
  std::size_t states = 0;
  for (const FileFact* file : folder.direct()) {
    const std::string_view name = folder.name(*file);
    if (name.starts_with("rng_state_") && name.ends_with(".pth")) ++states;
  }
  for (std::size_t rank = 0; rank < states; ++rank) {
    const std::string name = "rng_state_" + std::to_string(rank) + ".pth";
    if (folder.find(name) == nullptr) return missing(folder, name);
  }
  return std::nullopt;
}

// True for files that the Trainer writes before trainer_state.json. Callbacks add their own files later.
bool precedes_trainer_state(std::string_view name) {
  for (const char* begin : {"model", "pytorch_model", "adapter_", "optimizer", "scheduler", "scaler", "rng_state",
                            "training_args", "config.", "generation_config.", "tokenizer", "special_tokens"})
    if (name.starts_with(begin)) return true;
  return false;
}

std::optional<Trouble> trainer_trouble(const Folder& folder) {
  const FileFact* last = folder.find(k_last);
  if (last == nullptr) return missing(folder, k_last);
  if (auto torn = torn_file(folder)) return torn;
  if (!store::is_json(folder.text(*last, store::k_json_max)))
    return Trouble{"'" + sanitize(last->path) + "' is incomplete", last->path};
  if (auto none = weights_missing(folder)) return none;
  if (auto shard = shards_missing(folder)) return shard;
  if (auto inner = distributed_trouble(folder)) return inner;
  for (const std::string& name : folder.folders())
    if (const Folder sub = folder.sub(name); is_deepspeed_tag(sub))
      if (auto inner = deepspeed_trouble(sub)) return inner;
  if (auto rank = random_states_missing(folder)) return rank;
  // Other ranks' states may come later; all other files come before.
  if (folder.find("rng_state_0.pth") != nullptr) return std::nullopt;
  return newer_than(folder, *last, precedes_trainer_state);
}

}  // namespace

std::vector<Unit> find_transformers(const Folder& folder) {
  std::vector<Folder> steps;
  for (const std::string& name : folder.folders())
    if (name.starts_with(k_step) && all_digits(std::string_view(name).substr(k_step.size())))
      steps.push_back(folder.sub(name));
  std::vector<Unit> units;
  const bool any_marked = std::ranges::any_of(steps, is_marked);
  for (const Folder& step : steps)
    if (is_marked(step) || (any_marked && may_be_marked(step)))
      units.push_back(folder_unit(step, "transformers", trainer_trouble(step)));
  return units;
}

}  // namespace gridctl::whole
