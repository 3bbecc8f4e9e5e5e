// SPDX-License-Identifier: Apache-2.0
// Recognises Accelerate's save_state: weights, optimizer.bin, scheduler.bin…, then random_states_RANK.pkl, then
// custom_checkpoint_N.pkl for objects that the program registered. A folder may be saved into again.
#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_random = "random_states_", k_custom = "custom_checkpoint_";

bool is_accelerates(const Folder& folder) {
  if (folder.find("random_states_0.pkl") != nullptr) return true;
  // This folder is a save in progress: weights, and an optimizer under the name that only Accelerate uses.
  return folder.find("optimizer.bin") != nullptr && !weights_missing(folder);
}

// True for files that save_state writes before the random states. Programs add their own files later.
bool precedes_random_states(std::string_view name) {
  for (const char* begin : {"model", "pytorch_model", "optimizer", "scheduler", "sampler", "dl_state_dict", "scaler"})
    if (name.starts_with(begin)) return true;
  return false;
}

std::optional<Trouble> save_trouble(const Folder& folder) {
  const FileFact* random = folder.find("random_states_0.pkl");
  if (random == nullptr) return missing(folder, "random_states_0.pkl");
  if (auto torn = torn_file(folder)) return torn;
  if (auto shard = shards_missing(folder)) return shard;
  if (auto inner = distributed_trouble(folder)) return inner;
  // A hook of the program may save anything before the rest, in folders of its own.
  for (const FileFact& file : folder.files())
    if (folder.name(file).find('/') != std::string_view::npos && file.mtime_ns > random->mtime_ns &&
        names_weights(file.path))
      return Trouble{quoted_path(file.path) + " is newer than random_states_0.pkl, which is written after it", random->path};
  for (const FileFact* file : folder.direct()) {
    const std::string_view name = folder.name(*file);
    const std::string shown = "'" + sanitize(file->path) + "'";
    const bool own = name.starts_with(k_random) || name.starts_with(k_custom) || precedes_random_states(name);
    if (own && file->size == 0) return Trouble{shown + " is still empty", file->path};
    if (name.starts_with(k_random)) continue;  // ranks do not wait for each other
    if (name.starts_with(k_custom)) {
      if (file->mtime_ns < random->mtime_ns) return Trouble{shown + " still belongs to the previous save", file->path};
    } else if (precedes_random_states(name) && file->mtime_ns > random->mtime_ns) {
      return Trouble{shown + " is newer than random_states_0.pkl, which is written after it", random->path};
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<Unit> find_accelerate(const Folder& folder) {
  if (!is_accelerates(folder)) return {};
  Unit unit = folder_unit(folder, "accelerate", save_trouble(folder));
  unit.settle = std::chrono::seconds{1};  // what was registered follows, and nothing says how much that is
  return {std::move(unit)};
}

}  // namespace gridctl::whole
