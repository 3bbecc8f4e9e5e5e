// SPDX-License-Identifier: Apache-2.0
// Opens a driver's library at run time, so that neither building nor starting needs it.
#pragma once

#include <span>
#include <vector>

#include "base/result.hpp"

namespace gridctl::gpubench {

// Opens the first of `names` that exists and fills `entries` (pairs of a name and the place for its address). The
// library stays open until the process ends, because drivers run threads. Fails with unsupported if there is none, or
// if an entry is missing.
struct Entry {
  const char* name;
  void* address_of_pointer;
};
[[nodiscard]] Result<void> load(const std::vector<const char*>& names, std::span<const Entry> entries);

}  // namespace gridctl::gpubench
