// SPDX-License-Identifier: Apache-2.0
// The public half of an Ed25519 key (RFC 8032).
#pragma once

#include "base/bytes.hpp"

namespace gridctl::crypto {

// `seed`: the 32 bytes of the private key.
[[nodiscard]] Digest ed25519_public(const Digest& seed);

}  // namespace gridctl::crypto
