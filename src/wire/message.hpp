// SPDX-License-Identifier: Apache-2.0
// Declares the two functions of each message; GRIDCTL_REQUEST and GRIDCTL_REPLY of coding.hpp define them.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

#define GRIDCTL_MESSAGE(type, parse)             \
  [[nodiscard]] std::string encode(const type&); \
  [[nodiscard]] Result<type> parse(std::string_view);
