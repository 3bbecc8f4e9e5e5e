// SPDX-License-Identifier: Apache-2.0
// Implements Ed25519 (RFC 8032).
#pragma once

#include <array>

#include "base/bytes.hpp"

namespace gridctl::crypto {

using Signature = std::array<std::byte, 64>;

// `seed`: the 32 bytes of the private key.
[[nodiscard]] Digest ed25519_public(const Digest& seed);
[[nodiscard]] Signature ed25519_sign(const Digest& seed, ByteView message);
[[nodiscard]] bool ed25519_verifies(const Digest& public_key, ByteView message, const Signature& signature);

}  // namespace gridctl::crypto
