// SPDX-License-Identifier: Apache-2.0
#define ZSTD_STATIC_LINKING_ONLY  // ZSTD_c_literalCompressionMode: entropy coding without a search for matches
#include "store/codec.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>

#include "base/check.hpp"
#include "os/large_buffer.hpp"
#include "store/big_endian.hpp"
#include "store/planes.hpp"

namespace gridctl::store {
namespace {

constexpr std::size_t k_sample_piece = 8 * 1024;  // bytes; a multiple of every element width
constexpr std::size_t k_sample_pieces = 4;        // spread over the blob
constexpr std::size_t k_plain_min = 64;           // bytes: less cannot gain
constexpr double k_planes_gain_min = 0.03;        // planes must beat bytes by so much to be worth their time
constexpr double k_matches_gain_min = 0.03;       // and a search for matches must beat entropy coding alone

enum class Effort : std::uint8_t { entropy, matches };

struct FreeCompressor {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDecompressor {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

ZSTD_CCtx* compressor(Effort effort) {
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeCompressor> context(ZSTD_createCCtx());
  constexpr int k_no_matches = -100'000, k_fast = 1;  // a level far below 0 strides over nearly everything
  ZSTD_CCtx_reset(context.get(), ZSTD_reset_session_and_parameters);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, effort == Effort::entropy ? k_no_matches : k_fast);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_literalCompressionMode, ZSTD_ps_enable);
  return context.get();
}

ZSTD_DCtx* decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, FreeDecompressor> context(ZSTD_createDCtx());
  return context.get();
}

// Returns the bytes written, or nullopt if they do not fit.
std::optional<std::size_t> compress(ByteView plain, std::span<std::byte> out, Effort effort) {
  const std::size_t size = ZSTD_compress2(compressor(effort), out.data(), out.size(), plain.data(), plain.size());
  if (ZSTD_isError(size) != 0) return std::nullopt;
  return size;
}

Bytes sample_of(ByteView plain) {
  if (plain.size() <= k_sample_piece * k_sample_pieces) return {plain.begin(), plain.end()};
  Bytes sample;
  sample.reserve(k_sample_piece * k_sample_pieces);
  const std::size_t stride = (plain.size() - k_sample_piece) / (k_sample_pieces - 1) / k_planes_max * k_planes_max;
  for (std::size_t i = 0; i < k_sample_pieces; ++i) put_bytes(sample, plain.subspan(i * stride, k_sample_piece));
  return sample;
}

// Returns the bytes that an order-0 entropy coder would need.
double entropy_bytes(ByteView bytes) {
  std::array<std::uint32_t, 256> counts{};
  for (const std::byte byte : bytes) ++counts[static_cast<std::size_t>(byte)];
  double bits = 0;
  for (const std::uint32_t count : counts) {
    if (count != 0) bits += count * std::log2(static_cast<double>(bytes.size()) / count);
  }
  return bits / 8;
}

// Describes how to keep one run of bytes: by predicted size, from a sample of it.
struct Choice {
  bool pays = false;
  Effort effort = Effort::entropy;
};
Choice choose(ByteView sample) {
  if (sample.empty()) return {};
  Bytes out(sample.size());
  const double size = static_cast<double>(sample.size());
  const double entropy = static_cast<double>(compress(sample, out, Effort::entropy).value_or(sample.size()));
  const double matches = static_cast<double>(compress(sample, out, Effort::matches).value_or(sample.size()));
  const bool search = matches < entropy - size * k_matches_gain_min;
  return {std::min(entropy, matches) <= size * (1 - k_gain_min), search ? Effort::matches : Effort::entropy};
}

// Predicts the gain from planes with the best element width.
struct Guess {
  std::size_t width = 1;  // bytes of one element; 1 when planes would not help
  double bytes = 0;       // of the sample, by entropy
};
Guess guess(ByteView sample) {
  Guess best{1, entropy_bytes(sample)};
  const double size_of_sample = static_cast<double>(sample.size());
  const double limit = best.bytes - size_of_sample * k_planes_gain_min;
  Bytes planes;
  for (const std::size_t candidate : {2, 4, 8}) {
    const std::size_t count = sample.size() / candidate;
    if (count == 0) break;
    planes.resize(count * candidate);
    split_planes(sample.first(planes.size()), candidate, planes);
    double size = 0;
    for (std::size_t plane = 0; plane < candidate; ++plane)
      size += entropy_bytes(ByteView(planes).subspan(plane * count, count));
    // A wider element must pay for its extra planes.
    if (size < limit && size < best.bytes - (best.width > 1 ? size_of_sample * k_planes_gain_min / 2 : 0))
      best = {candidate, size};
  }
  return best;
}

// Writes a plane: method (1 byte: 0 raw, 1 zstd), length (4), bytes. Raw if that is shorter.
void put_plane(Bytes& out, ByteView plane) {
  thread_local Bytes compressed;
  const Choice choice = choose(sample_of(plane));
  std::optional<std::size_t> size;
  if (choice.pays) {
    compressed.resize(std::max(compressed.size(), plane.size()));
    size = compress(plane, std::span(compressed).first(plane.size() - 1), choice.effort);
  }
  const ByteView kept = size ? ByteView(compressed).first(*size) : plane;
  put_big_endian(out, static_cast<std::uint8_t>(size ? 1 : 0));
  put_big_endian(out, static_cast<std::uint32_t>(kept.size()));
  put_bytes(out, kept);
}

// Returns space for the planes of one chunk, which every chunk needs again.
std::span<std::byte> scratch(std::size_t size) {
  thread_local os::LargeBuffer planes;
  return planes.take(size);
}

Bytes encode_planes(ByteView plain, std::size_t width) {
  const std::size_t count = plain.size() / width;
  const std::span<std::byte> planes = scratch(count * width);
  split_planes(plain.first(planes.size()), width, planes);
  Bytes out;
  out.reserve(plain.size() + width * 8);
  for (std::size_t plane = 0; plane < width; ++plane) put_plane(out, ByteView(planes).subspan(plane * count, count));
  put_bytes(out, plain.subspan(planes.size()));
  return out;
}

Error undecodable(const char* what) {
  return make_error(Code::checkpoint_damaged, std::string("a stored chunk cannot be decoded: ") + what);
}

Result<void> expand(ByteView stored, std::span<std::byte> plain) {
  const std::size_t size =
      ZSTD_decompressDCtx(decompressor(), plain.data(), plain.size(), stored.data(), stored.size());
  if (ZSTD_isError(size) != 0) return undecodable(ZSTD_getErrorName(size));
  if (size != plain.size()) return undecodable("it is shorter than the index says");
  return {};
}

Result<Bytes> decode_planes(std::size_t width, ByteView stored, std::size_t plain_size) {
  const std::size_t count = plain_size / width;
  Reader in(stored);
  const std::span<std::byte> expanded = scratch(count * width);  // planes that were compressed
  std::array<const std::byte*, k_planes_max> planes{};
  for (std::size_t plane = 0; plane < width; ++plane) {
    const auto method = static_cast<std::uint8_t>(in.number<std::uint8_t>());
    const ByteView bytes = in.bytes(in.number<std::uint32_t>());
    if (!in.good() || method > 1) return undecodable("a plane is truncated");
    if (method == 0 && bytes.size() != count) return undecodable("a plane has another length than the index says");
    planes[plane] = bytes.data();
    if (method == 0) continue;
    const std::span<std::byte> to = expanded.subspan(plane * count, count);
    TRY(expand(bytes, to));
    planes[plane] = to.data();
  }
  const std::size_t tail = plain_size - count * width;
  if (in.left() != tail) return undecodable("bytes follow the last plane");
  Bytes plain(plain_size);
  join_planes(std::span(planes).first(width), std::span(plain).first(count * width));
  const ByteView rest = in.bytes(tail);
  std::copy(rest.begin(), rest.end(), plain.end() - static_cast<std::ptrdiff_t>(tail));
  return plain;
}

}  // namespace

std::optional<Encoded> encode(ByteView plain) {
  if (plain.size() < k_plain_min) return std::nullopt;
  const Bytes sample = sample_of(plain);
  const auto enough = [&](std::size_t size) {
    return static_cast<double>(size) <= static_cast<double>(plain.size()) * (1 - k_gain_min);
  };
  if (const std::size_t width = guess(sample).width; width > 1) {
    Encoded encoded{{Codec::planes, static_cast<std::uint16_t>(width)}, encode_planes(plain, width)};
    if (!enough(encoded.bytes.size())) return std::nullopt;
    return encoded;
  }
  const Choice choice = choose(sample);
  if (!choice.pays) return std::nullopt;
  Encoded encoded{{Codec::zstd, 0}, Bytes(plain.size() - 1)};
  const std::optional<std::size_t> size = compress(plain, encoded.bytes, choice.effort);
  if (!size || !enough(*size)) return std::nullopt;
  encoded.bytes.resize(*size);
  return encoded;
}

std::optional<Encoded> encode_difference(ByteView plain, Bytes base) {
  GRIDCTL_CHECK(plain.size() == base.size());
  if (plain.size() < k_plain_min) return std::nullopt;
  const Bytes sample = sample_of(plain);
  Bytes changed = sample_of(base);
  xor_into(changed, sample);
  if (guess(changed).bytes > guess(sample).bytes * (1 - k_difference_gain_min)) return std::nullopt;
  xor_into(base, plain);
  auto encoded = encode(base);
  if (!encoded) return std::nullopt;
  Codec& codec = encoded->encoding.codec;
  codec = codec == Codec::zstd ? Codec::difference_zstd : Codec::difference_planes;
  return encoded;
}

Result<Bytes> decode(Encoding encoding, ByteView stored, std::size_t plain_size, ByteView base) {
  const std::uint16_t width = encoding.parameter;
  if (is_difference(encoding.codec)) {
    if (base.size() != plain_size) return undecodable("its base has another length");
    encoding.codec = encoding.codec == Codec::difference_zstd ? Codec::zstd : Codec::planes;
    TRY_ASSIGN(Bytes plain, decode(encoding, stored, plain_size));
    xor_into(plain, base);
    return plain;
  }
  switch (encoding.codec) {
    case Codec::raw:
      if (width != 0 || stored.size() != plain_size) break;
      return Bytes(stored.begin(), stored.end());
    case Codec::zstd: {
      if (width != 0) break;
      Bytes plain(plain_size);
      TRY(expand(stored, plain));
      return plain;
    }
    case Codec::planes:
      if (width != 2 && width != 4 && width != 8) break;
      return decode_planes(width, stored, plain_size);
    case Codec::difference_zstd:
    case Codec::difference_planes: break;
  }
  return make_error(Code::unsupported, "chunk has codec " + std::to_string(static_cast<int>(encoding.codec)) +
                                           " with parameter " + std::to_string(width) +
                                           ", which this gridctl does not know");
}

}  // namespace gridctl::store
