// SPDX-License-Identifier: Apache-2.0
#include "whole/layout_tools.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "whole/names.hpp"

namespace gridctl::whole {
namespace {

constexpr unsigned char k_bin_int_1 = 'K', k_bin_int_2 = 'M', k_bin_int_4 = 'J';
constexpr unsigned char k_bin_put = 'q', k_long_bin_put = 'r', k_memoize = 0x94;

void blame(Unit& unit, std::optional<Trouble> trouble) {
  unit.whole = !trouble;
  if (!trouble) return;
  unit.why = std::move(trouble->why);
  unit.blame = std::move(trouble->blame);
  unit.lacking = trouble->absent;
}

}  // namespace

Unit folder_unit(const Folder& folder, std::string_view layout, std::optional<Trouble> trouble) {
  Unit unit;
  unit.layout = layout;
  unit.path = folder.is_top() ? "." : folder.path();
  for (const FileFact& file : folder.files()) unit.files.push_back(file.path);
  blame(unit, std::move(trouble));
  return unit;
}

Unit files_unit(std::string_view layout, std::string path, std::vector<const FileFact*> files,
                std::optional<Trouble> trouble) {
  Unit unit;
  unit.layout = layout;
  unit.path = std::move(path);
  for (const FileFact* file : files) unit.files.push_back(file->path);
  std::ranges::sort(unit.files);
  blame(unit, std::move(trouble));
  return unit;
}

std::string path_in(const Folder& folder, std::string_view relative) {
  return folder.is_top() ? std::string(relative) : folder.path() + "/" + std::string(relative);
}

Trouble missing(const Folder& folder, std::string_view relative) {
  std::string path = path_in(folder, relative);
  return {quoted_path(path) + " does not exist yet", path, true};
}

std::optional<Trouble> torn(const Folder& folder, const FileFact& file) {
  const store::Inspection inspection = folder.inspect(file);
  if (inspection.state != store::FileState::torn) return std::nullopt;
  return Trouble{quoted_path(file.path) + " is incomplete: " + inspection.why, file.path};
}

std::optional<Trouble> torn_file(const Folder& folder) {
  for (const FileFact& file : folder.files())
    if (!is_log_name(file.path))
      if (auto trouble = torn(folder, file)) return trouble;
  return std::nullopt;
}

Trouble names_incomplete(const FileFact& pointer, const std::string& what) {
  return {quoted_path(pointer.path) + " names " + what + ", which is incomplete", pointer.path};
}

std::optional<Trouble> newer_than(const Folder& folder, const FileFact& last, bool (*comes_before)(std::string_view)) {
  for (const FileFact& file : folder.files())
    if (file.mtime_ns > last.mtime_ns && comes_before(folder.name(file)))
      return Trouble{quoted_path(file.path) + " is newer than " + quoted_path(last.path) + ", which is written last", last.path};
  return std::nullopt;
}

std::vector<std::string> index_names(const Folder& folder, const FileFact& index) {
  std::set<std::string> names;
  const auto json = nlohmann::json::parse(folder.text(index, k_index_max), nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) return {};
  for (const auto& [tensor, file] : json["weight_map"].items())
    if (file.is_string()) names.insert(file.get<std::string>());
  return {names.begin(), names.end()};
}

std::optional<Trouble> shards_missing(const Folder& folder) {
  for (const FileFact* index : folder.direct()) {
    if (!index->path.ends_with(".index.json")) continue;
    const auto names = index_names(folder, *index);
    if (names.empty()) return Trouble{quoted_path(index->path) + " lists no shards", index->path};
    for (const std::string& name : names) {
      const FileFact* shard = folder.find(name);
      if (shard == nullptr) return missing(folder, name);
      if (shard->mtime_ns > index->mtime_ns)
        return Trouble{quoted_path(shard->path) + " is newer than its index " + quoted_path(index->path), index->path};
    }
  }
  return std::nullopt;
}

bool names_weights(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto begins = [&](std::string_view word) { return name.starts_with(word); };
  const auto ends = [&](std::string_view word) { return name.ends_with(word); };
  static constexpr std::string_view k_others[] = {"training_args", "optimizer",     "scheduler", "scaler",
                                                  "rng_state",     "random_states", "sampler"};
  static constexpr std::string_view k_ends[] = {".safetensors", ".bin", ".index.json", ".h5", ".msgpack"};
  return std::ranges::any_of(k_ends, ends) && std::ranges::none_of(k_others, begins);
}

std::optional<Trouble> weights_missing(const Folder& folder) {
  for (const FileFact& file : folder.files())
    if (names_weights(file.path)) return std::nullopt;
  for (const std::string& name : folder.folders()) {
    const Folder sub = folder.sub(name);
    if (is_distributed(sub) || is_deepspeed_tag(sub)) return std::nullopt;
  }
  return Trouble{"there are no weights yet", path_in(folder, "model.safetensors"), true};
}

std::optional<std::uint64_t> pickled_number(std::string_view pickle, std::string_view key) {
  const std::size_t at = pickle.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  std::string_view rest = pickle.substr(at + key.size());
  const auto byte = [&](std::size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0u; };
  if (byte(0) == k_bin_put) rest.remove_prefix(std::min<std::size_t>(2, rest.size()));
  else if (byte(0) == k_long_bin_put) rest.remove_prefix(std::min<std::size_t>(5, rest.size()));
  else if (byte(0) == k_memoize) rest.remove_prefix(1);
  if (byte(0) == k_bin_int_1) return byte(1);
  if (byte(0) == k_bin_int_2) return byte(1) | byte(2) << 8u;
  if (byte(0) == k_bin_int_4) return byte(1) | byte(2) << 8u | byte(3) << 16u | static_cast<std::uint64_t>(byte(4)) << 24u;
  return std::nullopt;
}

}  // namespace gridctl::whole
