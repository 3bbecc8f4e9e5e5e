// SPDX-License-Identifier: Apache-2.0
// Encodes blobs losslessly for a store: gridctl-store(5), "CODECS". Pure; keeps one zstd context per thread.
//
// Trained weights look like noise to a byte compressor, but the exponents of neighbouring numbers are alike: with the
// exponent in a separate plane, Gaussian bf16 needs 10.55 of 16 bits, fp32 26.55 of 32, whatever its scale
// (Hershcovitch et al. 2024, "ZipNN", arXiv 2411.05239). Samples determine the element width, not file formats, so the
// same code serves every framework's files.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.hpp"
#include "base/result.hpp"

namespace gridctl::store {

// The numbers are part of the format. A difference is the content XORed with another chunk of the same size, then
// encoded with zstd or planes. Its base is always a complete blob, never another difference: a restore reads at most
// two blobs for one, and garbage collection needs no chains.
enum class Codec : std::uint8_t { raw = 0, zstd = 1, planes = 2, difference_zstd = 3, difference_planes = 4 };
[[nodiscard]] inline bool is_difference(Codec codec) { return codec >= Codec::difference_zstd; }

struct Encoding {
  Codec codec = Codec::raw;
  std::uint16_t parameter = 0;  // planes: bytes of one element, 2, 4 or 8
  bool operator==(const Encoding&) const = default;
};

struct Encoded {
  Encoding encoding;
  Bytes bytes;  // shorter than the plain content
};

// Returns nullopt if encoding would save less than k_gain_min: then raw is best.
[[nodiscard]] std::optional<Encoded> encode(ByteView plain);
inline constexpr double k_gain_min = 0.02;  // of the size; less is not worth the time to decode

// Encodes the difference from `base`. Returns nullopt if it would not be smaller than the result of encode() by
// k_difference_gain_min, judged by samples: each read of a difference also decodes its base. `base` is used up.
// REQUIRES: equal sizes.
[[nodiscard]] std::optional<Encoded> encode_difference(ByteView plain, Bytes base);
inline constexpr double k_difference_gain_min = 0.06;

// Fails with checkpoint_damaged unless `stored` is a complete encoding of exactly `plain_size` bytes; unsupported for
// an encoding that this gridctl does not know. For a difference, `base` is its base. Allocates `plain_size` bytes and
// little more, whatever `stored` claims.
[[nodiscard]] Result<Bytes> decode(Encoding encoding, ByteView stored, std::size_t plain_size, ByteView base = {});

}  // namespace gridctl::store
