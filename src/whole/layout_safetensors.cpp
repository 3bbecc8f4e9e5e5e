// SPDX-License-Identifier: Apache-2.0
// Recognises save_pretrained: weights in shards with an index that names them, or a PEFT adapter. Either is only a part
// if an optimizer is saved beside it.
#include "base/text.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole {

std::vector<Unit> find_safetensors(const Folder& folder) {
  std::vector<Unit> units;
  for (const FileFact* index : folder.direct()) {
    const std::string_view name = folder.name(*index);
    if (!name.ends_with(".safetensors.index.json") && !name.ends_with(".bin.index.json")) continue;
    std::vector<const FileFact*> files{index};
    for (const std::string& shard : index_names(folder, *index))
      if (const FileFact* file = folder.find(shard)) files.push_back(file);
    Unit unit = files_unit("safetensors", index->path, std::move(files), shards_missing(folder));
    unit.part = true;
    units.push_back(std::move(unit));
  }
  return units;
}

std::vector<Unit> find_peft(const Folder& folder) {
  const FileFact* config = folder.find("adapter_config.json");
  const FileFact* weights = folder.find("adapter_model.safetensors");
  if (weights == nullptr) weights = folder.find("adapter_model.bin");
  if (config == nullptr && weights == nullptr) return {};
  std::vector<const FileFact*> files;
  std::optional<Trouble> trouble;
  if (weights != nullptr) {
    files.push_back(weights);
    trouble = torn(folder, *weights);
  } else {
    trouble = missing(folder, "adapter_model.safetensors");
  }
  if (config != nullptr) files.push_back(config);
  else trouble = missing(folder, "adapter_config.json");
  if (!trouble && folder.inspect(*config).state != store::FileState::whole)
    trouble = Trouble{"'" + sanitize(config->path) + "' is incomplete", config->path};
  Unit unit = files_unit("peft", folder.is_top() ? "." : folder.path(), std::move(files), std::move(trouble));
  unit.part = true;
  return {std::move(unit)};
}

}  // namespace gridctl::whole
