// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

// The stored form of what does not change with each heartbeat.
[[nodiscard]] std::string to_json(const Provider& provider);
[[nodiscard]] Result<Provider> parse_provider(std::string_view json);

}  // namespace gridctl::registry
