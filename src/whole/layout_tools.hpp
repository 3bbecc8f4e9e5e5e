// SPDX-License-Identifier: Apache-2.0
// Shares functions that several recognisers need.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "whole/layout.hpp"

namespace gridctl::whole {

// States why something is incomplete, and which file to blame (a path of the listing).
struct Trouble {
  std::string why, blame;
  bool absent = false;  // a file that belongs to it is not there
};

// Makes one unit of this layout from a complete folder.
[[nodiscard]] Unit folder_unit(const Folder& folder, std::string_view layout, std::optional<Trouble> trouble);
[[nodiscard]] Unit files_unit(std::string_view layout, std::string path, std::vector<const FileFact*> files,
                              std::optional<Trouble> trouble);

[[nodiscard]] std::string path_in(const Folder& folder, std::string_view relative);
[[nodiscard]] Trouble missing(const Folder& folder, std::string_view relative);
[[nodiscard]] std::optional<Trouble> torn(const Folder& folder, const FileFact& file);  // by its own format
// Returns the first file that is torn by its own format, or empty under a name that is never empty.
[[nodiscard]] std::optional<Trouble> torn_file(const Folder& folder);
[[nodiscard]] Trouble names_incomplete(const FileFact& pointer, const std::string& what);  // a file that only names it
// Returns the first file that, by its name, is written before `last` but has changed after it.
[[nodiscard]] std::optional<Trouble> newer_than(const Folder& folder, const FileFact& last,
                                                 bool (*comes_before)(std::string_view name));
// Returns whether a file with that name holds weights, of any model, and is neither an optimizer nor settings.
[[nodiscard]] bool names_weights(std::string_view path);
// Looks for weights in one file, in shards with an index, or in a nested folder.
[[nodiscard]] std::optional<Trouble> weights_missing(const Folder& folder);
// Checks that each index (*.index.json with a weight_map) names existing files.
[[nodiscard]] std::optional<Trouble> shards_missing(const Folder& folder);
[[nodiscard]] std::vector<std::string> index_names(const Folder& folder, const FileFact& index);
// Returns the faults of sub-folders that are checkpoints of torch.distributed.checkpoint.
[[nodiscard]] std::optional<Trouble> distributed_trouble(const Folder& folder);
[[nodiscard]] bool is_distributed(const Folder& folder);
// Returns true for a folder that is one DeepSpeed tag.
[[nodiscard]] bool is_deepspeed_tag(const Folder& folder);
[[nodiscard]] std::optional<Trouble> deepspeed_trouble(const Folder& folder);

// Returns an integer that a pickle stores under this key, as DeepSpeed does; nullopt if it is not found.
[[nodiscard]] std::optional<std::uint64_t> pickled_number(std::string_view pickle, std::string_view key);

inline constexpr std::size_t k_pickle_max = 1u << 20;  // bytes looked at; keys stand at its beginning or end
inline constexpr std::size_t k_index_max = 16u << 20;  // bytes of an index of shards

// Declares the layouts themselves, for layouts.cpp.
[[nodiscard]] std::vector<Unit> find_transformers(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_accelerate(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_lightning(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_distributed(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_deepspeed(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_megatron(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_orbax(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_tensorflow(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_keras(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_stable_baselines(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_safetensors(const Folder& folder);
[[nodiscard]] std::vector<Unit> find_peft(const Folder& folder);

// Returns the first incomplete set of files that are numbered within themselves: model-00001-of-00004.safetensors. It
// may count from 0 or from 1. Temporary files do not count.
[[nodiscard]] std::optional<Trouble> missing_shard(std::span<const FileFact> files);

}  // namespace gridctl::whole
