// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "registry/records.hpp"

namespace gridctl::registry {

// The stored form of what does not change with each heartbeat; ways to it are rows of their own.
[[nodiscard]] std::string to_json(const Provider& provider);
[[nodiscard]] Result<Provider> parse_provider(std::string_view json);
// All but the address, which has a column.
[[nodiscard]] std::string to_json(const Way& way);
[[nodiscard]] Result<Way> parse_way(std::string_view json);

}  // namespace gridctl::registry
