// SPDX-License-Identifier: Apache-2.0
// Recognises archives that hold a complete state in one file: Keras (NAME.keras), Stable-Baselines3 (NAME.zip), and
// torch.save files with both model and optimizer.
#include <algorithm>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"
#include "whole/names.hpp"

namespace gridctl::whole {
namespace {

bool has_entry(const std::vector<std::string>& entries, std::string_view name) {
  return std::ranges::find(entries, name) != entries.end();
}

}  // namespace

std::vector<Unit> find_keras(const Folder& folder) {
  std::vector<Unit> units;
  for (const FileFact* file : folder.direct())
    if (folder.name(*file).ends_with(".keras"))
      units.push_back(files_unit("keras", file->path, {file}, torn(folder, *file)));
  return units;
}

std::vector<Unit> find_stable_baselines(const Folder& folder) {
  std::vector<Unit> units;
  for (const FileFact* file : folder.direct()) {
    if (!folder.name(*file).ends_with(".zip")) continue;
    const auto entries = folder.entries(*file);
    if (!has_entry(entries, "policy.pth") || !has_entry(entries, "data")) continue;
    units.push_back(files_unit("stable-baselines3", file->path, {file}, std::nullopt));
    units.back().part = true;  // its replay buffer and what normalises its inputs are files of their own, written after it
  }
  return units;
}

std::string_view self_contained(const Folder& folder, const FileFact& file) {
  if (folder.inspect(file).state != store::FileState::whole) return {};
  const std::string pickle = folder.entry(file, "/data.pkl", k_pickle_max);
  if (pickle.find("optim") != std::string::npos || pickle.find("opt_state") != std::string::npos) return "torch";
  return names_a_whole_state(file.path) ? "format" : std::string_view{};
}

}  // namespace gridctl::whole
