// SPDX-License-Identifier: Apache-2.0
// Splits numbers into planes of bytes: all first bytes, all second ones, … Private to the room. Pure.
//
// Each little-endian element is first rotated left by one bit, which puts the sign after the mantissa and the
// exponent's
// top eight bits (bf16, fp32: all of them) into plane 0.
#pragma once

#include <cstddef>
#include <span>

#include "base/bytes.hpp"

namespace gridctl::store {

inline constexpr std::size_t k_planes_max = 8;

// REQUIRES: width is 2, 4 or 8; plain.size() == planes.size() == count * width. Plane p begins at p * count; plane 0
// has the most significant bytes.
void split_planes(ByteView plain, std::size_t width, std::span<std::byte> planes);
// Joins planes again; each may be at any address.
void join_planes(std::span<const std::byte* const> planes, std::span<std::byte> plain);

// REQUIRES: equal sizes.
void xor_into(std::span<std::byte> bytes, ByteView other);

}  // namespace gridctl::store
