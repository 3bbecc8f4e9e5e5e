// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "whole/layout_tools.hpp"
#include "whole/names.hpp"

namespace gridctl::whole {

// Folders that contain others come before those that may be inside them.
std::span<const Layout> layouts() {
  static constexpr std::array<Layout, 12> k_table{{
      {"transformers", find_transformers},
      {"accelerate", find_accelerate},
      {"megatron", find_megatron},
      {"deepspeed", find_deepspeed},
      {"orbax", find_orbax},
      {"torch-distributed", find_distributed},
      {"lightning", find_lightning},
      {"tensorflow", find_tensorflow},
      {"keras", find_keras},
      {"stable-baselines3", find_stable_baselines},
      {"safetensors", find_safetensors},
      {"peft", find_peft},
  }};
  return k_table;
}

namespace {

// Returns the folders of a listing, outer ones first.
std::set<std::string> folders_of(std::span<const FileFact> files) {
  std::set<std::string> folders{""};
  for (const FileFact& file : files)
    for (std::size_t slash = file.path.find('/'); slash != std::string::npos; slash = file.path.find('/', slash + 1))
      folders.insert(file.path.substr(0, slash));
  return folders;
}

bool all_claimed(const Folder& folder, const std::set<std::string_view>& claimed) {
  return std::ranges::all_of(folder.files(), [&](const FileFact& file) { return claimed.contains(file.path); });
}

}  // namespace

std::vector<Unit> find_units(const std::vector<FileFact>& files, const Access& access) {
  std::vector<FileFact> steady;
  for (const FileFact& file : files)
    if (!is_temporary_name(file.path)) steady.push_back(file);
  const Folder top(steady, "", access);
  std::vector<Unit> units;
  std::set<std::string_view> claimed;  // views of `steady`
  for (const std::string& path : folders_of(steady)) {
    const Folder folder = path.empty() ? top : top.sub(path);
    if (all_claimed(folder, claimed)) continue;
    for (const Layout& layout : layouts()) {
      for (Unit& unit : layout.find(folder)) {
        const auto taken = [&](const std::string& file) { return claimed.contains(file); };
        if (unit.files.empty() || std::ranges::any_of(unit.files, taken)) continue;
        for (const std::string& file : unit.files)
          if (const FileFact* fact = top.find(file)) claimed.insert(fact->path);
        units.push_back(std::move(unit));
      }
    }
  }
  std::ranges::sort(units, {}, &Unit::path);
  return units;
}

}  // namespace gridctl::whole
