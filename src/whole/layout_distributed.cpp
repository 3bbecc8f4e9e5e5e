// SPDX-License-Identifier: Apache-2.0
// Recognises torch.distributed.checkpoint, and what is sharded by it (FSDP): __RANK_N.distcp written in place, then
// .metadata, which names them. A folder may be saved into again: then it is torn until .metadata is newer than all of
// them.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_metadata = ".metadata", k_shard_end = ".distcp", k_name = "torch-distributed";
constexpr std::size_t k_metadata_max = 64u << 20;
constexpr std::size_t k_shard_name_max = 64;

bool is_shard(std::string_view name) { return name.starts_with("__") && name.ends_with(k_shard_end); }

// The names appear unchanged in the pickle.
std::set<std::string> shards_named(std::string_view pickle) {
  std::set<std::string> names;
  for (std::size_t at = pickle.find(k_shard_end); at != std::string_view::npos; at = pickle.find(k_shard_end, at + 1)) {
    const std::size_t from = at > k_shard_name_max ? at - k_shard_name_max : 0;
    const std::size_t begin = pickle.substr(from, at - from).rfind("__");
    if (begin == std::string_view::npos) continue;
    std::string name(pickle.substr(from + begin, at - from - begin));
    // Accepts "__0_12"; names with a second pair of underscores, such as "__0__1", do not occur.
    if (std::all_of(name.begin() + 2, name.end(), [](char c) { return c == '_' || is_digit(c); }))
      names.insert(name + std::string(k_shard_end));
  }
  return names;
}

std::optional<Trouble> shards_trouble(const Folder& folder) {
  const FileFact* metadata = folder.find(k_metadata);
  if (metadata == nullptr) return missing(folder, k_metadata);
  const std::string pickle = folder.text(*metadata, k_metadata_max);
  const std::string shown = "'" + sanitize(metadata->path) + "'";
  if (pickle.size() < 2 || pickle[0] != '\x80' || pickle.back() != '.')
    return Trouble{shown + " is incomplete", metadata->path};
  const auto names = shards_named(pickle);
  if (names.empty()) return Trouble{shown + " lists no shards", metadata->path};
  for (const std::string& name : names) {
    const FileFact* shard = folder.find(name);
    if (shard == nullptr || shard->size == 0) return missing(folder, name);
    if (shard->mtime_ns > metadata->mtime_ns)
      return Trouble{"'" + sanitize(shard->path) + "' is newer than .metadata, which is written last", metadata->path};
  }
  return std::nullopt;
}

std::vector<const FileFact*> own_files(const Folder& folder) {
  std::vector<const FileFact*> files;
  for (const FileFact* file : folder.direct())
    if (folder.name(*file) == k_metadata || is_shard(folder.name(*file))) files.push_back(file);
  return files;
}

}  // namespace

bool is_distributed(const Folder& folder) {
  const auto files = folder.direct();
  return std::ranges::any_of(files, [&](const FileFact* file) { return is_shard(folder.name(*file)); });
}

std::optional<Trouble> distributed_trouble(const Folder& folder) {
  for (const std::string& name : folder.folders())
    if (const Folder sub = folder.sub(name); is_distributed(sub))
      if (auto trouble = shards_trouble(sub)) return trouble;
  return std::nullopt;
}

std::vector<Unit> find_distributed(const Folder& folder) {
  if (!is_distributed(folder)) return {};
  auto trouble = shards_trouble(folder);
  const auto own = own_files(folder);
  const bool alone = own.size() == folder.files().size();
  Unit unit = folder.is_top() || !alone ? files_unit(k_name, folder.is_top() ? "." : folder.path(), own, trouble)
                                        : folder_unit(folder, k_name, trouble);
  // Weights without an optimizer are rarely the complete save.
  const FileFact* metadata = folder.find(k_metadata);
  unit.part = metadata != nullptr &&
              (!alone || folder.text(*metadata, k_metadata_max).find("opt") == std::string::npos);
  return {std::move(unit)};
}

}  // namespace gridctl::whole
