// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gridctl::control {

inline constexpr std::string_view k_version = GRIDCTL_VERSION;  // from CMake

}  // namespace gridctl::control
