// SPDX-License-Identifier: Apache-2.0
// A driver's library, opened at run time: nothing of it is needed to build or to start.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace gridctl::gpubench {

// Opens the first of `names` that there is and fills `entries` (pairs of a name and where its address goes). It stays
// open until the process ends, for drivers run threads. unsupported when there is none, or an entry is missing.
struct Entry {
  const char* name;
  void* address_of_pointer;
};
[[nodiscard]] Result<void> load(const std::vector<const char*>& names, std::span<const Entry> entries);

}  // namespace gridctl::gpubench
