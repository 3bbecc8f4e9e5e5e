// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "whole/layout_tools.hpp"
#include "whole/names.hpp"

namespace gridctl::whole {

namespace {

// Lists them in this order: the first that claims a file has it. Folders that contain others come before those that may
// be inside them.
constexpr std::array k_layouts{find_transformers, find_accelerate, find_megatron,   find_deepspeed,
                               find_orbax,        find_distributed, find_lightning, find_tensorflow,
                               find_keras,        find_stable_baselines, find_safetensors, find_peft};

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
    for (const auto& find : k_layouts) {
      for (Unit& unit : find(folder)) {
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
