// SPDX-License-Identifier: Apache-2.0
// Recognises Lightning: one torch archive NAME.ckpt with everything in it, written in place or under a temporary name.
#include <algorithm>

#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {
namespace {

constexpr std::string_view k_end = ".ckpt", k_version = "pytorch-lightning_version";

bool has_its_names(std::string_view name) {
  return name.find("epoch=") != std::string_view::npos || name.find("step=") != std::string_view::npos ||
         name == "last.ckpt" || (name.starts_with("last-v") && name.ends_with(k_end));
}

}  // namespace

std::vector<Unit> find_lightning(const Folder& folder) {
  std::vector<Unit> units;
  for (const FileFact* file : folder.direct()) {
    const std::string_view name = folder.name(*file);
    if (!name.ends_with(k_end)) continue;
    auto trouble = torn(folder, *file);
    const std::string pickle = trouble ? "" : folder.entry(*file, "/data.pkl", k_pickle_max);
    const bool its_own = pickle.find(k_version) != std::string::npos;
    if (!its_own && !(trouble && has_its_names(name))) continue;
    units.push_back(files_unit("lightning", file->path, {file}, std::move(trouble)));
  }
  return units;
}

}  // namespace gridctl::whole
