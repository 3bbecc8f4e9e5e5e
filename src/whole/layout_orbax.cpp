// SPDX-License-Identifier: Apache-2.0
// Recognises Orbax: a step's folder is written under a temporary name and renamed when it is complete;
// _CHECKPOINT_METADATA identifies it.
#include "whole/layout_tools.hpp"

namespace gridctl::whole {

std::vector<Unit> find_orbax(const Folder& folder) {
  const bool its_own = folder.find("_CHECKPOINT_METADATA") != nullptr ||
                       (folder.find("_METADATA") != nullptr && folder.find("manifest.ocdbt") != nullptr);
  if (!its_own || folder.is_top()) return {};
  return {folder_unit(folder, "orbax", std::nullopt)};
}

}  // namespace gridctl::whole
