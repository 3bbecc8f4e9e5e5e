// SPDX-License-Identifier: Apache-2.0
#include "crypto/poly_hash.hpp"

#include <gtest/gtest.h>

#include <bitset>
#include <cstring>
#include <random>

namespace gridctl::crypto::poly_hash_test {
namespace {

// As in the books, a bit at a time.
using Element = std::bitset<128>;

Element element(const std::byte* bytes) {
  Element e;
  for (std::size_t bit = 0; bit < 128; ++bit) e[bit] = (std::to_integer<unsigned>(bytes[bit / 8]) >> bit % 8 & 1u) != 0;
  return e;
}

Element times(Element a, const Element& b) {
  const Element modulus(0x87);
  Element product;
  for (std::size_t bit = 0; bit < 128; ++bit) {
    if (b[bit]) product ^= a;
    const bool carry = a[127];
    a <<= 1;
    if (carry) a ^= modulus;
  }
  return product;
}

Element reference(const PolyValue& key, Bytes content) {
  const std::uint64_t size = content.size();
  content.resize((size + 15) / 16 * 16 + 16);
  std::memcpy(content.data() + content.size() - 16, &size, sizeof size);
  Element sum;
  for (std::size_t at = 0; at < content.size(); at += 16)
    sum = times(sum ^ element(content.data() + at), element(key.data()));
  return sum;
}

class PolyHashTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!PolyHash::is_supported()) GTEST_SKIP() << "no carry-less multiplication on this processor";
  }
  Bytes random_bytes(std::size_t count) {
    Bytes bytes(count);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    return bytes;
  }
  PolyValue random_key() {
    PolyValue key;
    std::ranges::copy(random_bytes(key.size()), key.begin());
    return key;
  }
  std::mt19937_64 random_{7};
};

TEST_F(PolyHashTest, IsThePolynomialOfItsContent) {
  // Around the steps of 1, 8 and 16 blocks, odd ends, and several wide steps.
  for (const std::size_t size : {0, 1, 15, 16, 17, 127, 128, 129, 240, 255, 256, 257, 400, 511, 512, 1000, 4099}) {
    const PolyValue key = random_key();
    const Bytes content = random_bytes(size);
    const PolyValue value = PolyHash(key).of(content);
    EXPECT_EQ(element(value.data()), reference(key, content)) << size << " bytes";
  }
}

TEST_F(PolyHashTest, ChangesWithEveryBitAndWithTheLength) {
  const PolyHash hash(random_key());
  Bytes content = random_bytes(700);
  const PolyValue value = hash.of(content);
  for (std::size_t bit = 0; bit < content.size() * 8; ++bit) {
    const auto flip = static_cast<std::byte>(1u << bit % 8);
    content[bit / 8] ^= flip;
    ASSERT_NE(hash.of(content), value) << "bit " << bit;
    content[bit / 8] ^= flip;
  }
  EXPECT_EQ(hash.of(content), value);
  content.push_back(std::byte{0});
  EXPECT_NE(hash.of(content), value);
  EXPECT_NE(hash.of(Bytes(16)), hash.of(Bytes(32)));
  EXPECT_NE(PolyHash(random_key()).of(content), hash.of(content));
}

TEST_F(PolyHashTest, DoesNotCareWhereItsContentLies) {
  const PolyHash hash(random_key());
  const Bytes content = random_bytes(3000);
  for (std::size_t shift = 1; shift < 64; ++shift) {
    Bytes moved(shift);
    moved.insert(moved.end(), content.begin(), content.end());
    EXPECT_EQ(hash.of(ByteView(moved).subspan(shift)), hash.of(content)) << shift;
  }
}

}  // namespace
}  // namespace gridctl::crypto::poly_hash_test
