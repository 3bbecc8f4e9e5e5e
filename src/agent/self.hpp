// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gridctl::agent {

// SHA-256 of the running binary, hex; empty when it cannot be read.
[[nodiscard]] std::string self_hash();

}  // namespace gridctl::agent
