// SPDX-License-Identifier: Apache-2.0
// Two trees become one. Pure.
#pragma once

#include "base/result.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// All of `above`, and of `below` what does not stand in its way.
[[nodiscard]] Result<Tree> overlay(const Tree& below, const Tree& above);

}  // namespace gridctl::store
