// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gridctl::agent {

// Returns the SHA-256 of the running binary in hex; empty if it cannot be read.
[[nodiscard]] std::string self_hash();

}  // namespace gridctl::agent
