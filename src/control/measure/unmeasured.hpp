// SPDX-License-Identifier: Apache-2.0
// Keeps why a host could not be measured before its first job. Its GPUs are used all the same; a benchmark that succeeds
// later makes the note void.
#pragma once

#include <map>
#include <string>

#include "registry/host_records.hpp"

namespace gridctl::control {

// Adds a line to the host's history, too.
[[nodiscard]] Result<void> save_unmeasured(registry::HostRecords& records, const HostName& name, const std::string& why,
                                           WallTime at);
// Returns the reason by the name of each such host.
[[nodiscard]] Result<std::map<std::string, std::string>> load_unmeasured(registry::HostRecords& records);

}  // namespace gridctl::control
