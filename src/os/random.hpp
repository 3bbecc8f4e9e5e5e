// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.hpp"

namespace gridctl::os {

// Returns cryptographic randomness of the kernel.
[[nodiscard]] Bytes random_bytes(std::size_t count);
[[nodiscard]] Digest random_digest();
[[nodiscard]] std::uint64_t random_u64();
// Returns `characters` of lower-case base32 without look-alikes of 0, 1, l and o ("abcdefghijkmnpqrstuvwxyz23456789").
[[nodiscard]] std::string random_id(std::size_t characters);

}  // namespace gridctl::os
