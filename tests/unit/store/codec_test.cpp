// SPDX-License-Identifier: Apache-2.0
#include "store/codec.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace gridctl::store::codec_test {
namespace {

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<float> gaussian(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}
std::vector<std::uint16_t> bf16(const std::vector<float>& values) {
  std::vector<std::uint16_t> out;
  for (const float value : values) out.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
  return out;
}
Bytes noise(std::size_t size) {
  std::mt19937 random(7);
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Share of the plain size that is kept; checks the way back.
double kept(const Bytes& plain) {
  const std::optional<Encoded> encoded = encode(plain);
  if (!encoded) return 1;
  const Result<Bytes> back = decode(encoded->encoding, encoded->bytes, plain.size());
  EXPECT_TRUE(back) << back.error().one_line();
  EXPECT_TRUE(back && *back == plain);
  return static_cast<double>(encoded->bytes.size()) / static_cast<double>(plain.size());
}

constexpr std::size_t k_many = 1u << 20;

TEST(Codec, BringsGaussianWeightsNearTheirEntropy) {
  EXPECT_LE(kept(bytes_of(bf16(gaussian(k_many)))), 0.675);  // bound: 10.55 of 16 bits
  EXPECT_LE(kept(bytes_of(gaussian(k_many))), 0.845);        // bound: 26.55 of 32
  const std::vector<float> values = gaussian(k_many);
  EXPECT_LE(kept(bytes_of(std::vector<double>(values.begin(), values.end()))), 0.75);  // widened floats end in zeros
}

TEST(Codec, LeavesNoiseAsItIs) { EXPECT_FALSE(encode(noise(1u << 20))); }

TEST(Codec, FindsTheMatchesOfTextAndZeros) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) text += "{\"step\": " + std::to_string(i) + ", \"loss\": 0.25}\n";
  EXPECT_LT(kept(Bytes(as_bytes(text).begin(), as_bytes(text).end())), 0.3);
  EXPECT_LT(kept(Bytes(1u << 20)), 0.001);
}

TEST(Codec, KeepsEveryBitPatternOfEveryWidth) {
  std::vector<std::uint16_t> halves;
  for (int round = 0; round < 4; ++round)
    for (std::uint32_t i = 0; i <= 0xffff; ++i) halves.push_back(static_cast<std::uint16_t>(i));
  EXPECT_LT(kept(bytes_of(halves)), 0.9);
  std::vector<float> odd = gaussian(50'000);
  for (std::size_t i = 0; i < odd.size(); i += 50) {
    odd[i] = -0.0F;
    odd[i + 1] = std::numeric_limits<float>::denorm_min();
    odd[i + 2] = std::bit_cast<float>(0x7fa00001u);  // a signalling NaN with a payload
    odd[i + 3] = -std::numeric_limits<float>::infinity();
  }
  EXPECT_LT(kept(bytes_of(odd)), 0.95);
}

TEST(Codec, TakesOddSizes) {
  const Bytes weights = bytes_of(bf16(gaussian(40'000)));
  for (const std::size_t size : {0, 1, 63, 64, 65, 127, 4095, 8191, 32'767, 32'769, 65'537, 79'999})
    kept(Bytes(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(size)));
}

TEST(Codec, SurvivesEveryFlippedByteAndEveryTruncation) {
  const Bytes plain = bytes_of(bf16(gaussian(4000)));
  const std::optional<Encoded> encoded = encode(plain);
  ASSERT_TRUE(encoded);
  for (std::size_t i = 0; i < encoded->bytes.size(); ++i) {
    Bytes wrong = encoded->bytes;
    wrong[i] ^= std::byte{0x5a};
    const Result<Bytes> back = decode(encoded->encoding, wrong, plain.size());
    EXPECT_TRUE(!back || back->size() == plain.size());  // a wrong content is the digest's to find
    wrong.resize(i);
    EXPECT_FALSE(decode(encoded->encoding, wrong, plain.size()));
  }
  for (const std::uint16_t width : {0, 1, 3, 4, 8, 16})
    EXPECT_FALSE(decode({Codec::planes, width}, encoded->bytes, plain.size())) << width;
  EXPECT_FALSE(decode(encoded->encoding, encoded->bytes, plain.size() + 2));
  EXPECT_FALSE(decode({static_cast<Codec>(3), 0}, encoded->bytes, plain.size()));
  EXPECT_FALSE(decode({Codec::zstd, 0}, noise(1000), 4000));
}

}  // namespace
}  // namespace gridctl::store::codec_test
