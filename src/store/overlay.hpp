// SPDX-License-Identifier: Apache-2.0
// Merges two trees into one. Pure.
#pragma once

#include "base/result.hpp"
#include "store/tree.hpp"

namespace gridctl::store {

// Takes all of `above`, and of `below` everything that does not conflict with it.
[[nodiscard]] Result<Tree> overlay(const Tree& below, const Tree& above);

}  // namespace gridctl::store
