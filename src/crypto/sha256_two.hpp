// SPDX-License-Identifier: Apache-2.0
// Implements the compression function of SHA-256 (FIPS 180-4, section 6.2.2) for two messages side by side. With one
// message, a processor's SHA unit is idle half of the time, because each of its rounds waits for the one before.
// OpenSSL hashes one message at a time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gridctl::crypto {

// Returns whether this processor has the instructions of compress_two() (x86-64 with the SHA extensions).
[[nodiscard]] bool can_compress_two();

// Takes `blocks` blocks of 64 bytes of both messages into their states of eight words. REQUIRES: can_compress_two().
void compress_two(std::uint32_t* state, const std::byte* message, std::uint32_t* other_state,
                  const std::byte* other_message, std::size_t blocks);

}  // namespace gridctl::crypto
