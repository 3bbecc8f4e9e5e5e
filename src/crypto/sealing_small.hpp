// SPDX-License-Identifier: Apache-2.0
// Implements gcm_seal() for the agent on hosts: slower, but without EVP.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.hpp"

namespace gridctl::crypto {

// Gives the same bytes as gcm_seal() of "crypto/sealing.hpp", and has the same requirements.
void gcm_seal_small(ByteView key, ByteView nonce, ByteView extra, ByteView plain, std::span<std::byte> out);

}  // namespace gridctl::crypto
